import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { fakeIssuer, signed, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import type { RoleRules } from '@skep/auth/claims/roles.ts';
import { parseClaims } from '@skep/auth/claims/claims.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { afterAll, describe, expect, test } from 'vitest';
import { systemClock } from '@skep/core/time/clock.ts';
import { CONTRACT_SWITCHES } from '../../access/authority.ts';
import { apiUnderTest, bearer, oauthWith, type ApiUnderTest } from '../api.fixture.ts';
import { READ_ROUTES } from '../routes.ts';
import { openSignIn, type SignIn } from '../sign-in/sign-in.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

const key = await signingKey('k1');
const snapshot = snapshotOf({ files: [storedServer('io.acme/weather')] });
const opened: ApiUnderTest[] = [];
afterAll(() => Promise.all(opened.map((api) => api.close())));

const authWith = (rules: RoleRules) => oauthWith({ kind: 'full', rules, switches: CONTRACT_SWITCHES });
const ROOT: RoleRules = { superAdmin: [parseClaims({ role: 'root' })] };

describe('rights that a reload takes away', () => {
  /** A sign-in whose identity provider answers when it is told to. */
  async function slowDoor(
    rules: RoleRules,
  ): Promise<{ readonly door: SignIn; readonly answer: () => void; readonly asked: Promise<void> }> {
    const issuer = fakeIssuer([key]);
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const fetch: typeof issuer.fetch = async (url, request) => {
      asked.resolve();
      await answered.promise;
      return issuer.fetch(url, request);
    };
    const services = { clock: manualClock(), random: () => 0, log: silentLog, fetch: { ...issuer, fetch } };
    const door = await openSignIn(authWith(rules), services);
    return { door, answer: () => answered.resolve(), asked: asked.promise };
  }

  test('are not used by a request that has waited for the identity provider meanwhile', async () => {
    const [before, after] = [await slowDoor(ROOT), await slowDoor({})];
    after.answer();
    let current = before.door;
    const api = await apiUnderTest({ snapshot, routes: READ_ROUTES, signIn: () => current });
    opened.push(api);
    const waiting = api.get('/v1/me', await bearer(key, { role: 'root' }));
    await before.asked;
    current = after.door;
    before.answer();
    expect((await waiting).json()).toEqual({ subject: 'alice', roles: [] });
  });
});

describe('tokens that are refused', () => {
  const clockAt = { now: Date.parse('2026-01-01T00:00:00Z') };
  const clock = { ...systemClock, now: () => clockAt.now };
  const rate = { perSecond: 1, burst: 3 };

  test('are looked at so often for one address, then answered with 429, while good ones go on', async () => {
    const listener = { clock, refusalRate: () => rate };
    const api = await apiUnderTest({
      snapshot,
      routes: READ_ROUTES,
      auth: authWith(ROOT),
      keys: [key],
      listener,
    });
    opened.push(api);
    const good = await bearer(key, { role: 'root' });
    const statusOf = async (headers: Record<string, string>): Promise<number> =>
      (await api.get('/v1/me', headers)).statusCode;
    for (let at = 0; at < 5; at += 1) expect(await statusOf(good)).toBe(200);
    const bad = await Promise.all(
      Array.from({ length: 20 }, (_, at) => statusOf({ authorization: `Bearer made-up-${at}` })),
    );
    expect(bad.filter((status) => status === 401)).toHaveLength(3);
    expect(bad.filter((status) => status === 429)).toHaveLength(17);
    expect(await statusOf(good)).toBe(200);
    const limited = await api.get('/v1/me', { authorization: 'Bearer made-up-0' });
    expect([limited.statusCode, limited.headers['retry-after']]).toEqual([429, '1']);
    clockAt.now += 2000;
    const fresh = await signed(key, { role: 'root', n: 1 });
    expect(await statusOf({ authorization: `Bearer ${fresh}` })).toBe(200);
    expect(await statusOf({ authorization: 'Bearer made-up-0' })).toBe(401);
    expect(await statusOf({})).toBe(401);
  });
});
