import { createHash } from 'node:crypto';
import { decodeJwt } from 'jose';
import { describe, expect, test } from 'vitest';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { SignInStore } from './port.ts';
import { createProver } from './proof.ts';
import { refresh } from './refresh.ts';
import { signIn } from './sign-in.ts';
import { HOUR, KEY, keptIn, openBench } from './token-bench.fixture.ts';
import { servicesWith, startWorld, tokens, type Answer } from './world.fixture.ts';

describe('a token that is good', () => {
  test('is handed out without asking anybody, and refreshed a minute before it ends', async () => {
    await using bench = await openBench();
    const source = bench.source();
    const first = await source.token();
    bench.clock.pass(HOUR - 61_000);
    expect(await source.token()).toBe(first);
    expect(bench.refreshes()).toBe(0);
    bench.clock.pass(1_001);
    const second = await source.token();
    expect(second).not.toBe(first);
    const form = bench.world.server.of('POST /token').at(-1)?.form ?? new URLSearchParams();
    expect(Object.fromEntries(form)).toMatchObject({
      grant_type: 'refresh_token',
      client_id: 'mine',
      resource: bench.world.target.resource,
    });
    expect(form.has('scope')).toBe(false);
  });

  test('of a short life is used for nine tenths of it', async () => {
    await using bench = await openBench();
    bench.world.life = 100;
    const source = bench.source();
    bench.clock.pass(HOUR);
    const first = await source.token();
    bench.clock.pass(89_000);
    expect(await source.token()).toBe(first);
    bench.clock.pass(2_000);
    expect(await source.token()).not.toBe(first);
  });

  test('is refreshed when the clock was set back behind the time it was obtained', async () => {
    await using bench = await openBench();
    const source = bench.source();
    const first = await source.token();
    bench.clock.set(-HOUR);
    expect(await source.token()).not.toBe(first);
  });

  test('of a server that does not say how long is good for an hour', async () => {
    await using bench = await openBench({ expiresAt: 0 });
    bench.world.server.on.set('POST /token', () => ({ body: { access_token: 'x', token_type: 'Bearer' } }));
    const source = bench.source();
    expect(await source.token()).toBe('x');
    expect(keptIn(bench)).toMatchObject({ expiresAt: bench.clock.now() + HOUR });
  });
});

describe('a sign-in anew by another process', () => {
  test('is shown within ten seconds, though the old token is good', async () => {
    await using bench = await openBench();
    const source = bench.source();
    const old = await source.token();
    const theirs = { ...keptIn(bench), accessToken: 'of-another-person' };
    bench.store.kept.set(KEY, theirs);
    bench.clock.pass(9_000);
    expect(await source.token()).toBe(old);
    bench.clock.pass(1_000);
    expect(await source.token()).toBe('of-another-person');
    bench.store.kept.clear();
    bench.clock.pass(10_000);
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/not-signed-in' });
    bench.store.kept.set(KEY, { ...theirs, accessToken: 'of-a-third' });
    expect(await source.token()).toBe('of-a-third');
    expect(bench.refreshes()).toBe(0);
  });

  test('changes nothing while what is kept cannot be read', async () => {
    await using bench = await openBench();
    const store = { ...bench.store, read: bench.store.read };
    const source = bench.source({}, { ...store, read: (key) => store.read(key) });
    const old = await source.token();
    store.read = () => Promise.reject(new SkepError('secrets/damaged'));
    bench.clock.pass(10_000);
    expect(await source.token()).toBe(old);
  });
});

describe('a refresh', () => {
  test('happens once for fifty requests at the moment of expiry', async () => {
    await using bench = await openBench({ expiresAt: 0 });
    const source = bench.source();
    const all = await Promise.all(Array.from({ length: 50 }, () => source.token()));
    expect(new Set(all).size).toBe(1);
    expect(bench.refreshes()).toBe(1);
  });

  test('happens once for two processes that share a store, and never breaks a rotating token in 200 rounds', async () => {
    await using bench = await openBench();
    const both = [bench.source(), bench.source()];
    for (let round = 1; round <= 200; round += 1) {
      bench.clock.pass(HOUR);
      const all = await Promise.all([...both, ...both].map((source) => source.token()));
      expect(new Set(all).size).toBe(1);
      expect(bench.refreshes()).toBe(round);
    }
    expect(bench.states).toEqual([]);
  });

  test('keeps the rotated refresh token before the new access token is used', async () => {
    await using bench = await openBench({ expiresAt: 0 });
    let release: () => void = () => undefined;
    const written = new Promise<void>((resolve) => (release = resolve));
    const slow: SignInStore = {
      read: bench.store.read,
      change: async (key, next) => {
        const kept = await bench.store.change(key, next);
        await written;
        return kept;
      },
    };
    const source = bench.source({}, slow);
    let isOut = false;
    const token = source.token().then((one) => {
      isOut = true;
      return one;
    });
    await expect.poll(() => keptIn(bench).refreshToken).toBe(bench.world.refreshToken());
    expect(isOut).toBe(false);
    release();
    expect(await token).toBe(keptIn(bench).accessToken);
  });

  test('that is under way when the source is closed is waited for and kept, and none begins after it', async () => {
    await using bench = await openBench({ expiresAt: 0 });
    const good = bench.world.server.on.get('POST /token');
    const answer = Promise.withResolvers<void>();
    bench.world.server.on.set('POST /token', async (asked) => {
      await answer.promise;
      return good?.(asked) ?? {};
    });
    const source = bench.source();
    const token = source.token();
    await expect.poll(() => bench.refreshes()).toBe(1);
    let isClosed = false;
    const closed = source.close().then(() => (isClosed = true));
    const asked = source.token();
    expect(isClosed).toBe(false);
    answer.resolve();
    await closed;
    expect(keptIn(bench)).toMatchObject({
      refreshToken: bench.world.refreshToken(),
      accessToken: await token,
    });
    expect(await asked).toBe(await token);
    bench.clock.pass(HOUR);
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    expect(bench.refreshes()).toBe(1);
  });

  test('whose result cannot be written is not lost: the next try writes it, and asks nobody', async () => {
    await using bench = await openBench({ expiresAt: 0 });
    let isFull = true;
    const store: SignInStore = {
      read: bench.store.read,
      change: (key, next) =>
        bench.store.change(key, async (kept) => {
          const changed = await next(kept);
          if (isFull) throw new SkepError('file/write-failed');
          return changed;
        }),
    };
    const source = bench.source({}, store);
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    isFull = false;
    bench.clock.pass(10_001);
    await expect.poll(() => keptIn(bench).refreshToken).toBe(bench.world.refreshToken());
    expect(await source.token()).toBe(keptIn(bench).accessToken);
    expect(bench.refreshes()).toBe(1);
  });

  test('keeps the old refresh token where none comes with the answer, and who signed in', async () => {
    await using bench = await openBench({ expiresAt: 0, subject: 'alice' });
    bench.world.server.on.set('POST /token', () => ({ body: tokens(undefined) }));
    const before = keptIn(bench).refreshToken;
    await bench.source().token();
    expect(keptIn(bench)).toMatchObject({ refreshToken: before, subject: 'alice' });
  });

  test('of a service asks anew as the service', async () => {
    const client = { id: 'ci', secret: 's3cret', authMethod: 'client_secret_basic' } as const;
    await using bench = await openBench({
      way: 'client-credentials',
      client,
      refreshToken: undefined,
      expiresAt: 0,
    });
    bench.world.server.on.set('POST /token', () => ({ body: tokens(undefined) }));
    await bench.source().token();
    const form = bench.world.server.of('POST /token').at(-1)?.form ?? new URLSearchParams();
    expect(Object.fromEntries(form)).toMatchObject({ grant_type: 'client_credentials', scope: 'a' });
  });

  test('of a service asks for the same audience again', async () => {
    await using world = await startWorld();
    world.server.on.set('POST /token', () => ({ body: tokens(undefined) }));
    await using services = servicesWith();
    const given = { clientId: 'ci', clientSecret: 's3cret', authorizeParams: { audience: 'urn:mcp' } };
    const kept = await signIn({ ...world.target, ...given }, 'client-credentials', services);
    await refresh(kept, services);
    const asked = world.server.of('POST /token').map(({ form }) => form.get('audience'));
    expect(asked).toEqual(['urn:mcp', 'urn:mcp']);
  });
});

describe('a refresh that fails for good', () => {
  test.each(['invalid_grant', 'invalid_client', 'unauthorized_client', 'invalid_scope'])(
    'by %s ends the sign-in, and asks again only when somebody has signed in',
    async (error) => {
      await using bench = await openBench({ expiresAt: 0 });
      const good = bench.world.server.on.get('POST /token');
      bench.world.server.on.set('POST /token', () => ({ status: 400, body: { error } }));
      const source = bench.source();
      await expect(source.token()).rejects.toMatchObject({ code: 'auth/sign-in-ended' });
      await expect(source.token()).rejects.toMatchObject({ code: 'auth/sign-in-ended' });
      expect(bench.refreshes()).toBe(1);
      expect(source.state()).toBe('unauthenticated');
      expect(keptIn(bench).refreshToken).toBe(bench.world.refreshToken());
      bench.world.server.on.set('POST /token', good ?? (() => ({})));
      bench.store.kept.set(KEY, {
        ...keptIn(bench),
        accessToken: 'signed-in-again',
        expiresAt: bench.clock.now() + HOUR,
      });
      expect(await source.token()).toBe('signed-in-again');
      expect(bench.states).toEqual(['unauthenticated', 'running']);
    },
  );

  test('without a refresh token, and without anything that is kept', async () => {
    await using bench = await openBench({ expiresAt: 0, refreshToken: undefined });
    await expect(bench.source().token()).rejects.toMatchObject({ code: 'auth/sign-in-ended' });
    bench.store.kept.clear();
    const source = bench.source();
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/not-signed-in' });
    expect(source.state()).toBe('unauthenticated');
  });
});

test('a client that its server refuses is not kept as one to sign in with', async () => {
  const client = { id: 'mine', authMethod: 'none', registered: { callbackPort: 1 } } as const;
  await using bench = await openBench({ expiresAt: 0, client });
  bench.world.server.on.set('POST /token', () => ({ status: 401, body: { error: 'invalid_client' } }));
  await expect(bench.source().token()).rejects.toMatchObject({ code: 'auth/sign-in-ended' });
  expect(keptIn(bench).client).toEqual({ id: 'mine', authMethod: 'none', registered: undefined });
});

describe('a refresh that fails for a while', () => {
  test.each<[string, () => Answer | Promise<Answer>]>([
    ['with 503', () => ({ status: 503 })],
    ['with nothing, ever', () => new Promise(() => undefined)],
    ['with 429', () => ({ status: 429, body: { error: 'rate' } })],
    ['with 400 that gives no reason', () => ({ status: 400, body: {} })],
    ['with an answer that is none', () => ({ body: '<html>' })],
    ['with an answer without a token', () => ({ body: { token_type: 'Bearer' } })],
    ['with a reason that passes', () => ({ status: 400, body: { error: 'temporarily_unavailable' } })],
  ])('%s fails fast, is tried again, and is forgotten when it works', async (_name, answer) => {
    await using bench = await openBench({ expiresAt: 0 });
    const good = bench.world.server.on.get('POST /token');
    bench.world.server.on.set('POST /token', answer);
    const source = bench.source();
    const failed = { code: 'auth/unavailable', detail: { retryAfterSeconds: 10 } };
    await expect(source.token()).rejects.toMatchObject(failed);
    await expect(source.token()).rejects.toMatchObject(failed);
    expect(bench.refreshes()).toBe(1);
    expect(source.state()).toBe('running');
    bench.world.server.on.set('POST /token', good ?? (() => ({})));
    bench.clock.pass(10_001);
    expect(await source.token()).toMatch(/^access-/u);
    expect(bench.refreshes()).toBe(2);
  });

  test('waits 10, 20, 40, 80 seconds, then says so, and tries every ten minutes for a day', async () => {
    await using bench = await openBench({ expiresAt: 0 });
    bench.world.server.on.set('POST /token', () => ({ status: 503 }));
    const source = bench.source();
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    const waits: (number | undefined)[] = [];
    const again = async (): Promise<void> => {
      const wait = bench.clock.nextIn ?? 0;
      waits.push(wait);
      const before = bench.refreshes();
      bench.clock.pass(wait);
      await expect.poll(() => [bench.refreshes() > before, bench.clock.waiting]).toEqual([true, 1]);
    };
    for (let tries = 1; tries < 5; tries += 1) await again();
    expect(waits).toEqual([10_000, 20_000, 40_000, 80_000]);
    expect(source.state()).toBe('auth_retrying');
    await again();
    await again();
    expect(waits.slice(4)).toEqual([600_000, 600_000]);
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    bench.clock.pass(25 * HOUR);
    await expect.poll(() => source.state()).toBe('unauthenticated');
    expect(bench.states).toEqual(['auth_retrying', 'unauthenticated']);
    expect(bench.clock.waiting).toBe(0);
  });

  test('the old token serves until it ends, and what another process has refreshed at once', async () => {
    await using bench = await openBench();
    bench.world.server.on.set('POST /token', () => ({ status: 503 }));
    const source = bench.source();
    const old = await source.token();
    bench.clock.pass(HOUR - 30_000);
    expect(await source.token()).toBe(old);
    expect(await source.token()).toBe(old);
    expect(bench.refreshes()).toBe(1);
    bench.store.kept.set(KEY, {
      ...keptIn(bench),
      accessToken: 'theirs',
      expiresAt: bench.clock.now() + HOUR,
    });
    expect(await source.token()).toBe('theirs');
  });

  test('recovers by itself, and a source that was closed tries no more', async () => {
    await using bench = await openBench({ expiresAt: 0 });
    const good = bench.world.server.on.get('POST /token');
    bench.world.server.on.set('POST /token', () => ({ status: 503 }));
    const patience = {
      initialMs: 10,
      maxMs: 10,
      maxElapsedMs: 0,
      maxTries: 1,
      tickMs: 1_000,
      maxRetryingMs: HOUR,
    };
    const source = bench.source({ patience });
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    expect(source.state()).toBe('auth_retrying');
    bench.world.server.on.set('POST /token', good ?? (() => ({})));
    bench.clock.pass(1_001);
    await expect.poll(() => source.state()).toBe('running');
    bench.world.server.on.set('POST /token', () => ({ status: 503 }));
    bench.clock.pass(HOUR);
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/unavailable' });
    await source.close();
    await source.close();
    expect(bench.clock.waiting).toBe(0);
  });
});

describe('a token that the resource refuses', () => {
  test('is refreshed once for all that were refused, and not again at once', async () => {
    await using bench = await openBench();
    const source = bench.source();
    const old = await source.token();
    bench.clock.pass(60_000);
    const others = await Promise.all(Array.from({ length: 10 }, () => source.refused(old)));
    const [first] = others;
    expect(new Set(others).size).toBe(1);
    expect(first).not.toBe(old);
    expect(bench.refreshes()).toBe(1);
    expect(await source.refused(old)).toBe(first);
    expect(await source.refused(first ?? '')).toBeUndefined();
    expect(bench.refreshes()).toBe(1);
  });

  test('because it ended on its way is refreshed, however short its life is', async () => {
    await using bench = await openBench({ expiresAt: 1_000 });
    const kept = { ...keptIn(bench), obtainedAt: bench.clock.now(), expiresAt: bench.clock.now() + 1_000 };
    bench.store.kept.set(KEY, kept);
    const source = bench.source();
    const token = await source.token();
    expect(await source.refused(token)).toBeUndefined();
    bench.clock.pass(1_000);
    expect(await source.refused(token)).toBe(keptIn(bench).accessToken);
    expect(bench.refreshes()).toBe(1);
  });

  test('while the authorization server is away is asked for no more often than without refusals', async () => {
    await using bench = await openBench();
    bench.world.server.on.set('POST /token', () => ({ status: 503 }));
    const source = bench.source();
    const token = await source.token();
    bench.clock.pass(60_000);
    for (let calls = 0; calls < 8; calls += 1) expect(await source.refused(token)).toBeUndefined();
    expect(bench.refreshes()).toBe(1);
    expect(source.state()).toBe('running');
  });

  test('each time is refreshed less and less often', async () => {
    await using bench = await openBench();
    const source = bench.source();
    let token = await source.token();
    const pauses: number[] = [];
    for (let next = 0, waited = 0; pauses.length < 8;) {
      bench.clock.pass(10_000);
      waited += 10_000;
      const other = await source.refused(token);
      token = other ?? token;
      next = other === undefined ? next : pauses.push(waited);
      waited = other === undefined ? waited : 0;
    }
    expect(pauses).toEqual([10, 20, 40, 80, 160, 320, 600, 600].map((seconds) => seconds * 1_000));
    expect(bench.refreshes()).toBe(8);
  });

  test('has no other where it cannot be refreshed, and a person is needed then', async () => {
    await using bench = await openBench({ refreshToken: undefined });
    const source = bench.source();
    const old = await source.token();
    bench.clock.pass(60_000);
    expect(await source.refused(old)).toBeUndefined();
    expect(source.state()).toBe('unauthenticated');
    await expect(source.token()).rejects.toMatchObject({ code: 'auth/sign-in-ended' });
  });

  test('for want of scopes is not refreshed; the scopes are kept for the next sign-in', async () => {
    await using bench = await openBench();
    const source = bench.source();
    const old = await source.token();
    const header = 'Bearer error="insufficient_scope", scope="b c"';
    expect(await source.refused(old, header)).toBeUndefined();
    const kept = keptIn(bench);
    expect(kept.wanted).toEqual(['b', 'c']);
    await source.refused(old, header);
    expect(keptIn(bench)).toBe(kept);
    await source.refused(old, `Bearer error="insufficient_scope", scope="${'d '.repeat(3)}e"`);
    expect(keptIn(bench).wanted).toEqual(['b', 'c', 'd', 'e']);
    expect(await source.token()).toBe(old);
    expect(bench.refreshes()).toBe(0);
    bench.store.kept.set(KEY, { ...keptIn(bench), accessToken: 'with-more' });
    expect(await source.refused(old, header)).toBe('with-more');
    expect(await source.token()).toBe('with-more');
  });
});

test('scopes that a token lacked are not wanted of a sign-in that took its place meanwhile', async () => {
  await using bench = await openBench();
  const store: SignInStore = {
    ...bench.store,
    change(key, next) {
      bench.store.kept.set(KEY, { ...keptIn(bench), accessToken: 'signed-in-again', scopes: ['b'] });
      return bench.store.change(key, next);
    },
  };
  const source = bench.source({}, store);
  await source.refused(await source.token(), 'Bearer error="insufficient_scope", scope="b"');
  expect(keptIn(bench)).toMatchObject({ accessToken: 'signed-in-again' });
  expect(keptIn(bench).wanted).toBeUndefined();
});

describe('a token that is bound to a key', () => {
  test('is shown with a proof for each request, under the nonce that the resource asked for, and refreshed with that key', async () => {
    const client = { id: 'mine', authMethod: 'none' } as const;
    const { key } = await createProver(client);
    await using bench = await openBench({ client, proofKey: key });
    bench.world.server.on.set('POST /token', ({ headers }) => {
      const nonce = headers['dpop'] === undefined ? undefined : decodeJwt(String(headers['dpop']))['nonce'];
      if (nonce === 'of-server') return { body: { ...tokens('next'), token_type: 'DPoP' } };
      return { status: 400, headers: { 'dpop-nonce': 'of-server' }, body: { error: 'use_dpop_nonce' } };
    });
    const source = bench.source();
    const request = { method: 'POST', url: new URL(`${bench.world.target.resource}?a=b`) };
    const claims = async () => decodeJwt((await source.headersFor(request))['dpop'] ?? '');
    const token = await source.token();
    expect(await source.headersFor(request)).toMatchObject({ authorization: `DPoP ${token}` });
    const [first, second] = [await claims(), await claims()];
    expect(first).toMatchObject({ htm: 'POST', htu: bench.world.target.resource });
    expect(first['ath']).toBe(createHash('sha256').update(token).digest('base64url'));
    expect(first.jti).not.toBe(second.jti);
    expect(await source.refused(token, 'DPoP error="use_dpop_nonce"', 'of-resource')).toBe(token);
    expect((await claims())['nonce']).toBe('of-resource');
    bench.clock.pass(HOUR);
    expect(await source.token()).not.toBe(token);
    expect(keptIn(bench)).toMatchObject({ proofKey: key, refreshToken: 'next' });
    bench.store.kept.set(KEY, { ...keptIn(bench), proofKey: '{"kty":"none"}', expiresAt: 0 });
    await expect(bench.source().token()).rejects.toMatchObject({ code: 'auth/sign-in-ended' });
  });

  test('of a server that binds it to a key that nobody showed is not taken', async () => {
    await using bench = await openBench({ expiresAt: 0 });
    bench.world.server.on.set('POST /token', () => ({ body: { ...tokens('r'), token_type: 'DPoP' } }));
    await expect(bench.source().token()).rejects.toMatchObject({ code: 'auth/unavailable' });
  });
});
