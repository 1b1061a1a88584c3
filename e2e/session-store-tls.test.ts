import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { openRedisSessions } from '@skep/proxy/backend/replicas/redis-sessions.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisServer, type RedisServer } from './fixtures/redis-server.ts';
import { begunAt, Replica, statusOf } from './fixtures/replica.ts';
import { sessionServer, type SessionServer } from './fixtures/session-server.ts';
import { testAuthority } from './fixtures/test-authority.ts';
import { component, title } from './require.ts';

// A Redis that speaks TLS alone, with a certificate of an authority that no system knows.

const redis = await component('redis');
const LONG = { timeout: 60_000 };

describe.skipIf(!redis.available)(title('sessions in a Redis that speaks TLS', redis), () => {
  const root = mkdtempSync(path.join(tmpdir(), 'skep-redis-tls-'));
  let store: RedisServer;
  let plain: RedisServer;
  let server: SessionServer;
  let ours: string;
  let other: string;

  beforeAll(async () => {
    const authority = testAuthority(path.join(root, 'ours'));
    const certificate = authority.issue('redis', { for: ['IP:127.0.0.1'] });
    ours = path.join(certificate, 'ca.pem');
    other = path.join(
      testAuthority(path.join(root, 'another')).issue('x', { for: ['IP:127.0.0.1'] }),
      'ca.pem',
    );
    [store, plain, server] = await Promise.all([
      redisServer({ certificate }),
      redisServer(),
      sessionServer(),
    ]);
  });
  afterAll(async () => {
    await store[Symbol.asyncDispose]();
    await plain[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true });
  });

  /** The first line that tells of a Redis that does not answer. */
  async function refusal(address: string, ca: string | undefined): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const opened = await openRedisSessions(
      {
        address: address.replace(/\/3$/, ''),
        database: 3,
        keyPrefix: '',
        password: store.password,
        ca: ca === undefined ? undefined : [readFileSync(ca, 'utf8')],
      },
      {
        clock: systemClock,
        log: { ...silentLog, warn: (fields: object) => resolve(JSON.stringify(fields)) },
      },
    );
    try {
      await expect(opened.get('x')).rejects.toMatchObject({ code: 'proxy/session-store-away' });
      return await promise;
    } finally {
      opened.close();
    }
  }

  test('is refused in words where its authority is not trusted, is another, or nobody speaks TLS', async () => {
    const untrusted =
      'its certificate is of an authority that is not trusted here: name it with --skep-ca-bundle';
    expect(await refusal(store.address, undefined)).toContain(untrusted);
    expect(await refusal(store.address, other)).toContain(untrusted);
    expect(await refusal(store.address.replace('127.0.0.1', 'localhost'), ours)).toContain(
      'its certificate is for another name',
    );
    expect(await refusal(store.address.replace('rediss:', 'redis:'), undefined)).toContain(
      'it ends the connection, as one does that wants TLS (rediss://)',
    );
    expect(await refusal(plain.address.replace('redis:', 'rediss:'), ours)).toContain(
      'it gives no answer in TLS: it may not speak that',
    );
  });

  test('has two replicas of a packed proxy serve one session, with --skep-ca-bundle', async () => {
    const args = [server.url, '--skep-ca-bundle', ours];
    const [a, b, stranger] = [
      new Replica(args, store),
      new Replica(args, store),
      new Replica([server.url], store),
    ];
    try {
      await Promise.all([a.start(), b.start(), stranger.start()]);
      const session = await begunAt(a);
      await expect.poll(() => statusOf(b.url, session), LONG).toBe(200);
      expect(await store.dump()).toContain('skep:session:');
      expect(await statusOf(stranger.url, session)).toBe(503);
      const { stdout } = await stranger.user.skep(['logs', '--proxy', 'one']);
      expect(stdout).toContain('name it with --skep-ca-bundle');
      await a.kill();
      expect(await statusOf(b.url, session)).toBe(200);
    } finally {
      await Promise.all([a, b, stranger].map((one) => one.end()));
    }
  }, 120_000);
});
