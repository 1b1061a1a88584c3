import { type ManualClock, manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '@skep/core/log/log.ts';
import { TokenCache } from './cache.ts';
import type { TokenOutcome } from './outcome.ts';
import { createProvider, type ProviderSettings, type TokenProvider } from './provider.ts';
import {
  AUDIENCE,
  type FakeIssuer,
  fakeIssuer,
  forged,
  ISSUER,
  NOW,
  signed,
  type SigningKey,
  signingKey,
} from './tokens.fixture.ts';
import { createVerifier, type TokenVerifier } from './verifier.ts';

const S = NOW / 1_000;
let key: SigningKey;
beforeAll(async () => {
  key = await signingKey('k1');
});

const settings: ProviderSettings = {
  name: 'test',
  issuerUrl: ISSUER,
  allowPrivateIP: false,
  plainHttp: 'never',
  rules: { audience: AUDIENCE, leewayS: 5, subject: 'optional' },
  issuerMatch: 'exact',
  forcedRefreshEveryMs: 60_000,
};

interface Setup {
  readonly issuer: FakeIssuer;
  readonly clock: ManualClock;
  readonly provider: TokenProvider;
}

async function setup(changes: Partial<ProviderSettings> = {}): Promise<Setup> {
  const issuer = fakeIssuer([key]);
  const clock = manualClock();
  const services = { clock, random: () => 0, log: silentLog, fetch: issuer };
  return { issuer, clock, provider: await createProvider({ ...settings, ...changes }, services) };
}

const verifierOf = (...providers: TokenProvider[]): TokenVerifier =>
  createVerifier(providers, new TokenCache({ now: () => NOW, capMs: 60_000, maxCharacters: 100_000 }));
const kindOf = (outcome: TokenOutcome): string =>
  outcome.kind === 'invalid' ? outcome.reason : outcome.kind;

describe('a provider', () => {
  test('finds its keys by discovery', async () => {
    const { issuer, provider } = await setup();
    expect(kindOf(await provider.check(await signed(key)))).toBe('identity');
    expect(issuer.requests.map((one) => one.url)).toEqual([
      `${ISSUER}/.well-known/openid-configuration`,
      `${ISSUER}/jwks`,
    ]);
  });

  test('finds them by the metadata of OAuth where there are none of OpenID Connect', async () => {
    const { issuer, provider } = await setup();
    issuer.broken.set('/.well-known/openid-configuration', 404);
    expect(kindOf(await provider.check(await signed(key)))).toBe('identity');
    expect(issuer.requests.map((one) => one.url)).toEqual([
      `${ISSUER}/.well-known/openid-configuration`,
      `${ISSUER}/.well-known/oauth-authorization-server`,
      `${ISSUER}/jwks`,
    ]);
  });

  test('does not discover where the key set is configured', async () => {
    const { issuer, provider } = await setup({ jwksUrl: `${ISSUER}/jwks` });
    expect(kindOf(await provider.check(await signed(key)))).toBe('identity');
    expect(issuer.requests.map((one) => one.url)).toEqual([`${ISSUER}/jwks`]);
  });

  test.each([
    ['the connection fails', new TypeError('reset')],
    ['the server fails', 500],
  ])('is unavailable after three attempts when %s', async (_name, fault) => {
    const { issuer, clock, provider } = await setup();
    issuer.broken.set('/.well-known/openid-configuration', fault);
    expect(kindOf(await provider.check(await signed(key)))).toBe('unavailable');
    expect(issuer.requests).toHaveLength(3);
    expect(clock.slept).toEqual([250, 500]);
  });

  test('is unavailable when its metadata names another issuer', async () => {
    const { provider } = await setup({ issuerUrl: `${ISSUER}/tenant` });
    expect(kindOf(await provider.check(await signed(key, { iss: `${ISSUER}/tenant` })))).toBe('unavailable');
  });

  test.each([
    ['is an error', 500],
    ['is forbidden', 403],
    ['is gone', 404],
  ])('is unavailable when its key set %s', async (_name, status) => {
    const { issuer, provider } = await setup();
    issuer.broken.set('/jwks', status);
    expect(kindOf(await provider.check(await signed(key)))).toBe('unavailable');
  });

  test.each([
    ['no JSON', '<html>'],
    ['no key set', '{"keys":"x"}'],
    ['null', 'null'],
  ])('is unavailable when its key set is %s', async (_name, text) => {
    const { clock } = await setup();
    const fetch = { fetch: () => Promise.resolve(new Response(text)), close() {} };
    const provider = await createProvider(
      { ...settings, jwksUrl: `${ISSUER}/jwks` },
      { clock, random: () => 0, log: silentLog, fetch },
    );
    expect(kindOf(await provider.check(await signed(key)))).toBe('unavailable');
  });

  test('judges a forged token without asking anybody', async () => {
    const { issuer, provider } = await setup();
    for (const token of [
      forged({ alg: 'none', kid: 'k1' }, { iss: ISSUER }, ''),
      forged({ alg: 'ES256' }, { iss: ISSUER }),
      forged({ alg: 'ES256', kid: 'k1' }, { iss: 'https://evil.test' }),
      'garbage',
    ]) {
      expect((await provider.check(token)).kind).toBe('invalid');
    }
    expect(issuer.requests).toEqual([]);
  });

  test('accepts a slash more or less where told so', async () => {
    const { provider } = await setup({ issuerMatch: 'slash' });
    expect(kindOf(await provider.check(await signed(key, { iss: `${ISSUER}/` })))).toBe('identity');
  });

  test.each([
    ['an issuer over http', { issuerUrl: 'http://idp.test' }],
    ['an issuer over http on loopback', { issuerUrl: 'http://localhost:1' }],
    ['no URL', { issuerUrl: 'idp.test' }],
    ['a file', { jwksUrl: 'file:///etc/passwd' }],
    ['credentials', { introspectionUrl: 'https://user:secret@idp.test/' }],
    ['nothing to ask', { issuerUrl: undefined }],
  ])('is refused at start with %s', async (_name, changes) => {
    await expect(setup(changes)).rejects.toThrow(expect.objectContaining({ code: 'auth/invalid-provider' }));
  });

  test('shows no secret of an address that it refuses', async () => {
    await expect(setup({ jwksUrl: 'https://user:hunter2@idp.test/?key=hunter2' })).rejects.toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
    );
  });

  test('accepts http on loopback where told so', async () => {
    const { provider } = await setup({ issuerUrl: 'http://127.0.0.1:1', plainHttp: 'loopback' });
    expect(provider.name).toBe('test');
  });
});

describe('an opaque token', () => {
  const active = { active: true, sub: 'bob', aud: AUDIENCE, exp: S + 60, org: 'acme', team: ['a', 'b'] };
  const opaque: Partial<ProviderSettings> = {
    introspectionUrl: `${ISSUER}/introspect`,
    clientId: 'me',
    clientSecret: 's e:c',
  };

  test('is accepted with all its claims', async () => {
    const { issuer, provider } = await setup(opaque);
    issuer.active = active;
    expect(await provider.check('opaque')).toMatchObject({
      kind: 'identity',
      identity: { subject: 'bob', claims: { org: 'acme', team: ['a', 'b'] } },
      expiresAt: NOW + 60_000,
    });
    const [sent] = issuer.requests;
    expect(sent?.request.method).toBe('POST');
    expect(sent?.request.body?.toString()).toBe('token_type_hint=access_token&token=opaque');
    expect(sent?.request.headers?.['authorization']).toBe(`Basic ${btoa('me:s+e%3Ac')}`);
  });

  test('is asked about without credentials where none are configured', async () => {
    const { issuer, provider } = await setup({ introspectionUrl: `${ISSUER}/introspect` });
    issuer.active = active;
    expect((await provider.check('opaque')).kind).toBe('identity');
    expect(issuer.requests[0]?.request.headers?.['authorization']).toBeUndefined();
    expect(issuer.requests[0]?.request.body?.toString()).not.toContain('client_id');
  });

  test('is asked about whatever it looks like where no keys are to be had', async () => {
    const { issuer, provider } = await setup({ ...opaque, issuerUrl: undefined });
    issuer.active = { active: true, sub: 'a', exp: S + 60, aud: AUDIENCE };
    expect((await provider.check(await signed(key))).kind).toBe('identity');
    issuer.active = { active: false };
    expect(kindOf(await provider.check(await signed(key)))).toBe('inactive');
    expect(issuer.requests.map((one) => one.url)).toEqual([`${ISSUER}/introspect`, `${ISSUER}/introspect`]);
  });

  test('is asked about at the endpoint of the metadata', async () => {
    const { issuer, provider } = await setup({ introspection: 'discover' });
    issuer.active = active;
    expect((await provider.check('opaque')).kind).toBe('identity');
    expect((await provider.check('other')).kind).toBe('identity');
    expect(issuer.requests.filter((one) => one.url.includes('well-known'))).toHaveLength(1);
  });

  test.each([
    ['inactive', { active: false }, 'inactive'],
    ['expired', { ...active, exp: S }, 'expired'],
    ['without expiry', { ...active, exp: undefined }, 'no-expiry'],
    ['not yet valid', { ...active, nbf: S + 6 }, 'not-yet-valid'],
    ['with nbf of text', { ...active, nbf: String(S + 600) }, 'unusable-claims'],
    ['with an expiry of text', { ...active, exp: String(S + 600) }, 'no-expiry'],
    ['of another issuer', { ...active, iss: 'https://evil.test' }, 'wrong-issuer'],
    ['of a list of issuers', { ...active, iss: ['https://idp.test'] }, 'wrong-issuer'],
    ['for another audience', { ...active, aud: ['x'] }, 'wrong-audience'],
    ['without audience', { ...active, aud: undefined }, 'wrong-audience'],
  ])('is refused when %s', async (_name, answer, reason) => {
    const { issuer, provider } = await setup(opaque);
    issuer.active = answer;
    expect(kindOf(await provider.check('opaque'))).toBe(reason);
  });

  test.each([
    ['username', { ...active, sub: undefined, username: 'u', client_id: 'c' }, 'u'],
    ['client_id', { ...active, sub: undefined, client_id: 'c' }, 'c'],
  ])('without sub has the subject of %s', async (_name, answer, subject) => {
    const { issuer, provider } = await setup(opaque);
    issuer.active = answer;
    expect(await provider.check('opaque')).toMatchObject({ identity: { subject } });
  });

  test('that names nobody at all is refused, where somebody has to be named', async () => {
    const rules = { ...settings.rules, subject: 'required' } as const;
    const { issuer, provider } = await setup({ ...opaque, rules });
    issuer.active = { ...active, sub: undefined };
    expect(kindOf(await provider.check('opaque'))).toBe('no-subject');
  });

  test.each([
    ['an error', 500],
    ['our credentials refused', 401],
    ['a broken connection', new TypeError('reset')],
  ])('is neither good nor bad after %s', async (_name, fault) => {
    const { issuer, provider } = await setup(opaque);
    issuer.broken.set('/introspect', fault);
    expect(kindOf(await provider.check('opaque'))).toBe('unavailable');
  });

  test.each([[{ active: 'true' }], [[]], ['x']])(
    'is neither good nor bad after the answer %j',
    async (answer) => {
      const { issuer, provider } = await setup(opaque);
      issuer.active = answer;
      expect(kindOf(await provider.check('opaque'))).toBe('unavailable');
    },
  );

  test('is refused where introspection is not configured', async () => {
    const { provider } = await setup();
    expect(kindOf(await provider.check('opaque'))).toBe('opaque-not-accepted');
  });

  test('a JWT with a bad signature is never introspected', async () => {
    const { issuer, provider } = await setup(opaque);
    issuer.active = active;
    const token = await signed(key);
    expect(kindOf(await provider.check(`${token.slice(0, -8)}AAAAAAAA`))).toBe('bad-signature');
    expect(issuer.requests.some((one) => one.url.endsWith('/introspect'))).toBe(false);
  });
});

describe('several providers', () => {
  const answering = (name: string, outcome: TokenOutcome): TokenProvider & { asked: number } => ({
    name,
    asked: 0,
    check() {
      this.asked += 1;
      return Promise.resolve(outcome);
    },
    ready: () => Promise.resolve(true),
    close() {},
  });
  const no = (
    reason: Extract<TokenOutcome, { kind: 'invalid' }>['reason'],
  ): TokenProvider & { asked: number } => answering('no', { kind: 'invalid', reason });
  const yes = (): TokenProvider & { asked: number } =>
    answering('yes', {
      kind: 'identity',
      identity: { issuer: ISSUER, subject: 'a', name: '', email: '', groups: [], claims: {} },
      expiresAt: NOW + 1_000,
    });
  const away = (): TokenProvider & { asked: number } =>
    answering('away', { kind: 'unavailable', cause: undefined });

  test.each([
    ['the first that accepts wins', [no('wrong-issuer'), yes()], 'identity'],
    ['one that is away does not hinder another', [away(), yes()], 'identity'],
    ['all refuse', [no('expired'), no('bad-signature')], 'expired'],
    ['the reason of the issuer counts most', [no('wrong-issuer'), no('expired')], 'expired'],
    ['one is away, the other refuses', [away(), no('wrong-issuer')], 'unavailable'],
    ['the other way round', [no('inactive'), away()], 'unavailable'],
    ['all are away', [away(), away()], 'unavailable'],
    ['there are none', [], 'malformed'],
  ])('%s', async (_name, providers, expected) => {
    expect(kindOf(await verifierOf(...providers).verify('token'))).toBe(expected);
  });

  test('a token of a provider that answers is judged although another is away', async () => {
    const up = await setup();
    const down = await setup({ issuerUrl: 'https://down.test' });
    down.issuer.broken.set('/.well-known/openid-configuration', new TypeError('reset'));
    const verifier = verifierOf(down.provider, up.provider);
    expect(kindOf(await verifier.verify(await signed(key, { exp: S })))).toBe('expired');
    expect(kindOf(await verifier.verify(await signed(key)))).toBe('identity');
    expect(down.issuer.requests).toEqual([]);
    const theirs = await signed(key, { iss: 'https://down.test' });
    expect(kindOf(await verifier.verify(theirs))).toBe('unavailable');
  });

  test('many requests with one new token share a check, later ones the cache', async () => {
    const provider = yes();
    const verifier = verifierOf(provider);
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => verifier.verify('token')));
    expect(new Set(outcomes).size).toBe(1);
    expect(verifier.known('token')).toBe(outcomes[0]);
    expect(provider.asked).toBe(1);
  });

  test('a refused token is not asked about again for some seconds, and never accepted for that', async () => {
    const provider = no('inactive');
    const clock = manualClock();
    const cache = new TokenCache({ now: clock.now, capMs: 60_000, maxCharacters: 100_000 });
    const verifier = createVerifier([provider], cache);
    const ask = async (): Promise<string> => kindOf(await verifier.verify('token'));
    expect([await ask(), await ask()]).toEqual(['inactive', 'inactive']);
    expect(provider.asked).toBe(1);
    expect(verifier.known('token')).toMatchObject({ kind: 'invalid' });
    clock.pass(5_000);
    expect(await ask()).toBe('inactive');
    expect(provider.asked).toBe(2);
  });

  test('an outage is never remembered', async () => {
    const provider = away();
    const verifier = verifierOf(provider);
    await verifier.verify('token');
    await verifier.verify('token');
    expect(provider.asked).toBe(2);
  });

  test('more than sixteen unknown opaque tokens at once are not as many questions to the provider', async () => {
    const issuer = fakeIssuer([key]);
    const answer = Promise.withResolvers<void>();
    const fetch: FakeIssuer['fetch'] = async (url, request) => {
      await answer.promise;
      return issuer.fetch(url, request);
    };
    const provider = await createProvider(
      { ...settings, introspectionUrl: `${ISSUER}/introspect` },
      { clock: manualClock(), random: () => 0, log: silentLog, fetch: { ...issuer, fetch } },
    );
    const waiting = Array.from({ length: 100 }, (_, at) => provider.check(`made-up-${at}`));
    const busy = await Promise.race(waiting.slice(16));
    expect(busy).toMatchObject({ kind: 'unavailable', retryAfterSeconds: 1 });
    answer.resolve();
    const outcomes = (await Promise.all(waiting)).map(kindOf);
    expect(outcomes.filter((kind) => kind === 'inactive')).toHaveLength(16);
    expect(issuer.requests.filter((one) => one.url.endsWith('/introspect'))).toHaveLength(16);
    expect(kindOf(await provider.check('later'))).toBe('inactive');
  });

  test('a provider speaks for the claims and roles that it was given, and for no others', async () => {
    const { provider } = await setup({ grants: { claims: ['org'], roles: ['manageEntries'] } });
    const token = await signed(key, {
      org: 'partner',
      role: 'root',
      groups: ['all'],
      email: 'boss@acme.test',
    });
    const outcome = await provider.check(token);
    expect(outcome).toMatchObject({
      identity: { claims: { iss: ISSUER, org: 'partner' }, groups: [], grantable: ['manageEntries'] },
    });
    const claims = outcome.kind === 'identity' ? outcome.identity.claims : {};
    expect(Object.keys(claims).toSorted((a, b) => a.localeCompare(b))).toEqual(['iss', 'org']);
  });
});
