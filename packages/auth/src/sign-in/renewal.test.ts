import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { KeptClient, SignInStore } from './port.ts';
import { HOUR, KEY, keptIn, openBench, type Bench } from './token-bench.fixture.ts';
import { startScripted, type Answer, type Asked } from './world.fixture.ts';

// RFC 7592 §2.2: the secret of a registered client is replaced before it ends, and nothing of the old is lost before the new one holds.

const DAY = 24 * HOUR;

/** A sign-in of a client whose secret ends in `endsIn`; its server knows the newest secret alone. */
async function openEnding(endsIn: number, answer?: (asked: Asked) => Answer): Promise<Bench & Ending> {
  const bench = await openBench();
  const { world, clock } = bench;
  const shared = { secret: 'secret-0', token: 'token-0' };
  const client: KeptClient = {
    id: 'registered',
    secret: shared.secret,
    authMethod: 'client_secret_basic',
    registered: {
      uri: `${world.server.origin}/register/registered`,
      token: shared.token,
      secretExpiresAt: clock.now() + endsIn,
      callbackPort: 4711,
      scopes: ['a', 'b'],
    },
  };
  bench.store.kept.set(KEY, { ...keptIn(bench), client });
  world.server.on.set('PUT /register/registered', (asked) => {
    if (answer !== undefined) return answer(asked);
    if (asked.headers['authorization'] !== `Bearer ${shared.token}`) return { status: 401 };
    const count = world.server.of('PUT /register/registered').length;
    shared.secret = `secret-${count}`;
    shared.token = `token-${count}`;
    return {
      body: {
        ...(JSON.parse(asked.body) as object),
        client_secret: shared.secret,
        client_secret_expires_at: Math.floor((clock.now() + 30 * DAY) / 1_000),
        registration_access_token: shared.token,
        registration_client_uri: '/register/registered',
      },
    };
  });
  const good = world.server.on.get('POST /token');
  world.server.on.set('POST /token', (asked) => {
    const isKnown = asked.headers['authorization'] === `Basic ${btoa(`registered:${shared.secret}`)}`;
    return isKnown ? (good?.(asked) ?? {}) : { status: 401, body: { error: 'invalid_client' } };
  });
  return { ...bench, renewals: () => world.server.of('PUT /register/registered') };
}

interface Ending {
  readonly renewals: () => Asked[];
}

function onDisk({ store }: Bench, disk: { readonly isFull: boolean }): SignInStore {
  return {
    read: store.read,
    change: (key, next) =>
      store.change(key, async (kept) => {
        const changed = await next(kept);
        if (disk.isFull) throw new SkepError('file/write-failed');
        return changed;
      }),
  };
}

describe('a secret that ends within a day', () => {
  test('is replaced once before the next refresh, for all that ask, and the new one is used', async () => {
    await using bench = await openEnding(DAY + HOUR);
    const source = bench.source();
    const old = await source.token();
    bench.clock.pass(HOUR);
    const all = await Promise.all(Array.from({ length: 50 }, () => source.token()));
    expect(new Set(all).size).toBe(1);
    expect(all[0]).not.toBe(old);
    expect(bench.renewals()).toHaveLength(1);
    const [{ body, headers } = { body: '', headers: {} }] = bench.renewals();
    expect(headers).toMatchObject({ authorization: 'Bearer token-0', 'content-type': 'application/json' });
    expect(JSON.parse(body)).toEqual({
      client_id: 'registered',
      client_name: 'Skep MCP Client',
      application_type: 'native',
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: ['http://localhost:4711/callback'],
      scope: 'a b',
    });
    expect(keptIn(bench)).toMatchObject({
      accessToken: all[0],
      refreshToken: bench.world.refreshToken(),
      client: {
        secret: 'secret-1',
        registered: { token: 'token-1', callbackPort: 4711, scopes: ['a', 'b'] },
      },
    });
    bench.clock.pass(HOUR);
    expect(await source.token()).not.toBe(all[0]);
    expect(bench.renewals()).toHaveLength(1);
    expect(bench.states).toEqual([]);
  });

  test('is left alone while it is good for longer', async () => {
    await using bench = await openEnding(2 * DAY);
    const source = bench.source();
    bench.clock.pass(HOUR);
    await source.token();
    expect(bench.renewals()).toHaveLength(0);
    expect(keptIn(bench).client.secret).toBe('secret-0');
  });

  test('is replaced once for two processes that share a store, in each of 50 rounds', async () => {
    await using bench = await openEnding(DAY);
    const both = [bench.source(), bench.source()];
    for (let round = 1; round <= 50; round += 1) {
      bench.clock.pass(29 * DAY + HOUR);
      const all = await Promise.all([...both, ...both].map((source) => source.token()));
      expect(new Set(all).size).toBe(1);
      expect(bench.renewals()).toHaveLength(round);
      expect(keptIn(bench).client.secret).toBe(`secret-${round}`);
    }
    expect(bench.states).toEqual([]);
  });

  test('is replaced though it has ended', async () => {
    await using bench = await openEnding(-HOUR);
    bench.clock.pass(HOUR);
    await bench.source().token();
    expect(keptIn(bench).client.secret).toBe('secret-1');
  });

  test('is kept before it is used: a refresh that fails after it loses nothing', async () => {
    await using bench = await openEnding(DAY);
    bench.world.server.on.set('POST /token', () => ({ status: 503 }));
    bench.clock.pass(HOUR);
    await expect(bench.source().token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    expect(keptIn(bench).client).toMatchObject({ secret: 'secret-1', registered: { token: 'token-1' } });
  });

  test('and cannot be written is not lost: the next try writes it, and renews nothing', async () => {
    await using bench = await openEnding(DAY);
    const disk = { isFull: true };
    const store = onDisk(bench, disk);
    bench.clock.pass(HOUR);
    const source = bench.source({}, store);
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    expect(keptIn(bench).client.secret).toBe('secret-0');
    disk.isFull = false;
    bench.clock.pass(10_001);
    await expect.poll(() => keptIn(bench).refreshToken).toBe(bench.world.refreshToken());
    expect(await source.token()).toBe(keptIn(bench).accessToken);
    expect(keptIn(bench).client.secret).toBe('secret-1');
    expect(bench.renewals()).toHaveLength(1);
  });

  test('beside tokens that could not be written: neither is lost', async () => {
    await using bench = await openEnding(DAY + HOUR + 5_000);
    const disk = { isFull: true };
    const store = onDisk(bench, disk);
    bench.clock.pass(HOUR);
    const source = bench.source({}, store);
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    disk.isFull = false;
    bench.clock.pass(10_001);
    await expect.poll(() => keptIn(bench).accessToken).toBe(await source.token());
    expect(keptIn(bench).refreshToken).toBe(bench.world.refreshToken());
    expect(keptIn(bench).client.secret).toBe('secret-1');
    expect(bench.refreshes()).toBe(1);
  });
});

describe('a renewal', () => {
  test.each<[string, (asked: Asked) => Answer]>([
    ['is refused', () => ({ status: 401, body: { error: 'invalid_token' } })],
    ['is not offered', () => ({ status: 405 })],
    ['fails', () => ({ status: 500 })],
    ['is answered with what is no JSON', () => ({ body: '<html>' })],
    [
      'is about another client',
      ({ body }) => ({ body: { ...(JSON.parse(body) as object), client_id: 'x', client_secret: 'y' } }),
    ],
    [
      'makes another kind of client',
      ({ body }) => ({ body: { ...(JSON.parse(body) as object), token_endpoint_auth_method: 'none' } }),
    ],
    ['leads elsewhere', () => ({ status: 307, headers: { location: 'https://elsewhere.test/' } })],
  ])('that %s leaves the old secret in use', async (_name, answer) => {
    await using bench = await openEnding(DAY, answer);
    const source = bench.source();
    const old = await source.token();
    bench.clock.pass(HOUR);
    expect(await source.token()).not.toBe(old);
    expect(bench.renewals()).toHaveLength(1);
    expect(keptIn(bench).client).toMatchObject({ id: 'registered', secret: 'secret-0' });
    expect(bench.states).toEqual([]);
  });

  test('that gives neither a secret nor an address keeps those that there were', async () => {
    await using bench = await openEnding(DAY, () => ({ body: { client_id: 'registered' } }));
    bench.clock.pass(HOUR);
    const before = keptIn(bench).client;
    await bench.source().token();
    const { uri, token } = before.registered ?? {};
    expect(keptIn(bench).client).toMatchObject({ secret: 'secret-0', registered: { uri, token } });
  });

  test('that names another host leaves the address as it was, and shows nobody else the token', async () => {
    await using elsewhere = await startScripted();
    await using bench = await openEnding(DAY, ({ body }) => ({
      body: {
        ...(JSON.parse(body) as object),
        client_secret: 'secret-0',
        client_secret_expires_at: 1,
        registration_client_uri: `${elsewhere.origin}/register/registered`,
      },
    }));
    const source = bench.source();
    for (const _ of [1, 2]) {
      bench.clock.pass(HOUR);
      await source.token();
    }
    expect(bench.renewals()).toHaveLength(2);
    expect(elsewhere.asked).toEqual([]);
  });

  test('by another process is not undone by one whose old secret is refused meanwhile', async () => {
    await using bench = await openEnding(DAY, () => ({ status: 503 }));
    const renewed = { ...keptIn(bench).client, secret: 'secret-1' };
    const store: SignInStore = {
      read: bench.store.read,
      async change(key, next) {
        try {
          return await bench.store.change(key, next);
        } catch (error) {
          // What another process does as soon as the lock is free.
          bench.store.kept.set(KEY, { ...keptIn(bench), accessToken: 'newer', client: renewed });
          throw error;
        }
      },
    };
    bench.world.server.on.set('POST /token', () => ({ status: 401, body: { error: 'invalid_client' } }));
    bench.clock.pass(HOUR);
    await expect(bench.source({}, store).token()).rejects.toMatchObject({ code: 'auth/sign-in-ended' });
    expect(keptIn(bench)).toMatchObject({ accessToken: 'newer', client: renewed });
  });

  test('whose new secret is refused leaves no client to sign in with again', async () => {
    await using bench = await openEnding(DAY);
    bench.world.server.on.set('POST /token', () => ({ status: 401, body: { error: 'invalid_client' } }));
    bench.clock.pass(HOUR);
    await expect(bench.source().token()).rejects.toMatchObject({ code: 'auth/sign-in-ended' });
    expect(keptIn(bench).client).toMatchObject({ secret: 'secret-1', registered: undefined });
  });

  test('of a secret that has ended is tried again while the server is away, and nobody has to sign in', async () => {
    await using bench = await openEnding(HOUR, () => ({ status: 503 }));
    const source = bench.source();
    bench.clock.pass(2 * HOUR);
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    expect(bench.refreshes()).toBe(0);
    expect(source.state()).toBe('running');
    expect(bench.clock.waiting).toBe(1);
  });

  test('that nobody can ask for is not tried: the server has not said where', async () => {
    await using bench = await openEnding(DAY);
    const { client } = keptIn(bench);
    const registered = { ...client.registered, token: undefined };
    bench.store.kept.set(KEY, { ...keptIn(bench), client: { ...client, registered } });
    bench.clock.pass(HOUR);
    await bench.source().token();
    expect(bench.renewals()).toHaveLength(0);
  });

  test('that fails tells no secret, whatever its server sends back', async () => {
    const said = 'secret-0 token-0';
    await using bench = await openEnding(DAY, () => ({
      status: 400,
      body: { error: said, error_description: said },
    }));
    const told: unknown[] = [];
    const line = (fields: object, message: string): void => void told.push([fields, message]);
    const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log };
    bench.clock.pass(HOUR);
    await bench.source({ log }).token();
    expect(told).toHaveLength(1);
    expect(inspect(told, { depth: Infinity })).not.toMatch(/secret-0|token-0/u);
  });
});
