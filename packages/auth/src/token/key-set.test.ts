import { type ManualClock, manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '@skep/core/log/log.ts';
import { KeySet, type LoadedKeys } from './key-set.ts';
import { type SigningKey, signingKey } from './tokens.fixture.ts';

const MINUTE = 60_000;
let first: SigningKey;
let second: SigningKey;
beforeAll(async () => {
  [first, second] = await Promise.all([signingKey('k1'), signingKey('k2')]);
});

interface Provider {
  readonly clock: ManualClock;
  readonly set: KeySet;
  keys: SigningKey[];
  maxAgeMs: number | undefined;
  away: boolean;
  loads: number;
}

function provider(keys: SigningKey[]): Provider {
  const clock = manualClock();
  const made: Omit<Provider, 'set'> = { clock, keys, maxAgeMs: undefined, away: false, loads: 0 };
  const load = async (): Promise<LoadedKeys> => {
    made.loads += 1;
    await Promise.resolve();
    if (made.away) throw new TypeError('no route');
    return { jwks: { keys: made.keys.map((key) => key.jwk) }, maxAgeMs: made.maxAgeMs };
  };
  return Object.assign(made, {
    set: new KeySet({ load, clock, log: silentLog, forcedEveryMs: MINUTE, outageMs: 60 * MINUTE }),
  });
}

const header = (key: SigningKey): { alg: string; kid: string } => ({ alg: key.alg, kid: key.kid });
const found = expect.objectContaining({ type: 'public' });
const unknown = expect.objectContaining({ code: 'ERR_JWKS_NO_MATCHING_KEY' });
const unavailable = expect.objectContaining({ code: 'auth/unavailable' });

describe('keys', () => {
  test('are loaded once for many requests', async () => {
    const at = provider([first]);
    const all = await Promise.all(Array.from({ length: 20 }, () => at.set.find(header(first))));
    expect(all).toEqual(Array(20).fill(found));
    expect(at.loads).toBe(1);
  });

  test('cannot be had when the provider is away, and a failure is not kept', async () => {
    const at = provider([first]);
    at.away = true;
    await expect(at.set.find(header(first))).rejects.toEqual(unavailable);
    at.away = false;
    expect(await at.set.find(header(first))).toEqual(found);
  });

  test.each([
    [undefined, 11.9, 12.1],
    [10_000, 0.9, 1.1],
    [5 * MINUTE, 4.9, 5.1],
    [48 * 60 * MINUTE, 11.9, 12.1],
  ])(
    'are refreshed in the background, with max-age %s between a minute and twelve',
    async (maxAgeMs, before, after) => {
      const at = provider([first]);
      at.maxAgeMs = maxAgeMs;
      await at.set.find(header(first));
      at.clock.pass(before * MINUTE);
      await at.set.find(header(first));
      expect(at.loads).toBe(1);
      at.clock.pass((after - before) * MINUTE);
      await at.set.find(header(first));
      expect(at.loads).toBe(2);
    },
  );

  test('that were withdrawn stop working after fifteen minutes, whatever max-age says', async () => {
    const at = provider([first]);
    at.maxAgeMs = 86_400_000;
    await at.set.find(header(first));
    at.keys = [second];
    at.clock.pass(15 * MINUTE);
    await expect(at.set.find(header(first))).rejects.toEqual(unknown);
  });

  test('go on working when a refresh fails, which is not tried with every request', async () => {
    const at = provider([first]);
    await at.set.find(header(first));
    at.away = true;
    at.clock.pass(59 * MINUTE);
    for (let request = 0; request < 5; request += 1) expect(await at.set.find(header(first))).toEqual(found);
    expect(at.loads).toBe(2);
  });

  test('serve for an hour while the provider is away, and then nobody is let in until it answers', async () => {
    const at = provider([first]);
    await at.set.find(header(first));
    at.away = true;
    at.clock.pass(60 * MINUTE);
    for (let request = 0; request < 5; request += 1)
      await expect(at.set.find(header(first))).rejects.toEqual(unavailable);
    expect(at.loads).toBe(2);
    at.away = false;
    at.clock.pass(MINUTE);
    expect(await at.set.find(header(first))).toEqual(found);
  });
});

describe('an unknown key id', () => {
  test('makes a rotated key work at once', async () => {
    const at = provider([first]);
    await at.set.find(header(first));
    at.keys = [first, second];
    expect(await at.set.find(header(second))).toEqual(found);
    expect(at.loads).toBe(2);
  });

  test('causes at most one load a minute', async () => {
    const at = provider([first]);
    await at.set.find(header(first));
    await expect(at.set.find({ alg: 'ES256', kid: 'made-up' })).rejects.toEqual(unknown);
    at.clock.pass(MINUTE / 2);
    for (let request = 0; request < 10; request += 1) {
      const asked = at.set.find({ alg: 'ES256', kid: `made-up-${request}` });
      await expect(asked).rejects.toMatchObject({
        code: 'auth/unavailable',
        detail: { retryAfterSeconds: 30 },
      });
    }
    expect(at.loads).toBe(2);
    at.clock.pass(MINUTE / 2);
    await expect(at.set.find(header(second))).rejects.toEqual(unknown);
    expect(at.loads).toBe(3);
  });

  test('causes one load for many requests', async () => {
    const at = provider([first]);
    await at.set.find(header(first));
    at.keys = [first, second];
    await Promise.all(Array.from({ length: 20 }, () => at.set.find(header(second))));
    expect(at.loads).toBe(2);
  });

  test('is no verdict while the provider is away', async () => {
    const at = provider([first]);
    await at.set.find(header(first));
    at.away = true;
    await expect(at.set.find(header(second))).rejects.toEqual(unavailable);
    await expect(at.set.find(header(second))).rejects.toEqual(unavailable);
    expect(at.loads).toBe(2);
    expect(await at.set.find(header(first))).toEqual(found);
  });
});
