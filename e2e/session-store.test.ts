import { setTimeout as delay } from 'node:timers/promises';
import { silentLog, type Log } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { openRedisSessions } from '@skep/proxy/backend/replicas/redis-sessions.ts';
import { sessionStoreContract } from '@skep/proxy/backend/replicas/contract.ts';
import type { SessionStore } from '@skep/proxy/backend/replicas/session-store.ts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { redisServer, type RedisServer } from './fixtures/redis-server.ts';
import { component, title } from './require.ts';

const redis = await component('redis');

describe.skipIf(!redis.available)(title('a session store in a real Redis', redis), () => {
  let server: RedisServer;
  let store: SessionStore;
  const opened = (password: string | undefined, log: Log = silentLog): Promise<SessionStore> =>
    openRedisSessions(
      { address: `redis://127.0.0.1:${server.port}`, database: 3, keyPrefix: 'a:', password },
      { clock: systemClock, log },
    );
  const answers = (one: SessionStore): Promise<boolean> =>
    one.get('x').then(
      () => true,
      () => false,
    );
  beforeAll(async () => {
    server = await redisServer();
    store = await opened(server.password);
    await vi.waitUntil(() => answers(store), { timeout: 20_000 });
  });
  afterAll(async () => {
    store.close();
    await server[Symbol.asyncDispose]();
  });

  sessionStoreContract(
    () => store,
    (milliseconds) => delay(milliseconds),
  );

  test('is away without its password, and while the server is; it says when it is back', async () => {
    const stranger = await opened(undefined);
    await expect(stranger.get('x')).rejects.toMatchObject({ code: 'proxy/session-store-away' });
    stranger.close();
    let isBack = false;
    store.onBack(() => (isBack = true));
    await store.replace('kept', { expected: undefined, value: 'v', ttlMs: 60_000 });
    await server.kill();
    await expect(store.get('kept')).rejects.toMatchObject({ code: 'proxy/session-store-away' });
    await server.start('kept');
    await expect.poll(() => isBack, { timeout: 20_000 }).toBe(true);
    expect(await store.get('kept')).toBe('v');
  });

  test('says in one line that Redis is away, however often it is asked, and never the password', async () => {
    const lines: string[] = [];
    const told = (fields: object, message: string): void => void lines.push(JSON.stringify(fields) + message);
    const one = await opened(server.password, { ...silentLog, warn: told, info: told });
    await vi.waitUntil(() => answers(one), { timeout: 20_000 });
    await server.kill();
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(1);
    for (let asked = 0; asked < 20; asked += 1) expect(await answers(one)).toBe(false);
    await server.start('kept');
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(2);
    expect(lines).toEqual([
      expect.stringContaining('Redis does not answer'),
      expect.stringContaining('Redis answers again'),
    ]);
    expect(lines.join('')).not.toContain(server.password);
    one.close();
  });

  test('is away while it says nothing, without its end being told, and is back by itself', async () => {
    const lines: string[] = [];
    const told = (_: object, message: string): void => void lines.push(message);
    const one = await opened(server.password, { ...silentLog, warn: told, info: told });
    await vi.waitUntil(() => answers(one), { timeout: 20_000 });
    server.freeze();
    // Two questions without an answer are enough; from then on nobody waits for one.
    for (let asked = 0; asked < 2; asked += 1) expect(await answers(one)).toBe(false);
    const since = performance.now();
    for (let asked = 0; asked < 20; asked += 1) expect(await answers(one)).toBe(false);
    expect(performance.now() - since).toBeLessThan(2_000);
    server.thaw();
    await vi.waitUntil(() => answers(one), { timeout: 20_000 });
    expect(lines).toEqual([
      'Redis does not answer: only sessions that this proxy knows are served',
      'Redis answers again: sessions are shared',
    ]);
    one.close();
  }, 60_000);
});
