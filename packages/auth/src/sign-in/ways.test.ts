import { generateKeyPairSync } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import type { KeptSignIn, SignInServices, SignInTarget, SignInWay } from './port.ts';
import { refresh } from './refresh.ts';
import { signIn } from './sign-in.ts';
import { signOut, withdrawBeside } from './sign-out.ts';
import {
  browsingPerson,
  fastClock,
  servicesWith,
  startScripted,
  startWorld,
  tokens,
  type World,
} from './world.fixture.ts';

const GRANT = 'urn:ietf:params:oauth:grant-type:';

const DEVICE = {
  device_code: 'device-secret',
  user_code: 'WDJB-MJHT',
  verification_uri: 'https://as.test/device',
  verification_uri_complete: 'https://as.test/device?user_code=WDJB-MJHT',
  expires_in: 600,
  interval: 3,
};

async function signInBy(
  way: SignInWay,
  world: World,
  given: Partial<SignInTarget> = {},
  changes: Partial<SignInServices> = {},
): Promise<KeptSignIn> {
  await using services = servicesWith(changes);
  return signIn({ ...world.target, ...given }, way, services);
}

describe('the device grant', () => {
  test('shows the code, waits as it is told, more slowly when it is told, and gets tokens', async () => {
    await using world = await startWorld();
    world.server.on.set('POST /device', () => ({ body: DEVICE }));
    const answers = ['authorization_pending', 'slow_down', 'authorization_pending'];
    world.server.on.set('POST /token', () => {
      const error = answers.shift();
      return error === undefined ? { body: tokens('r') } : { status: 400, body: { error } };
    });
    const clock = fastClock();
    const shown: string[] = [];
    const person = {
      show() {},
      showCode: (...all: (string | undefined)[]) => void shown.push(all.join(' ')),
    };
    const kept = await signInBy(
      'device',
      world,
      { scopes: ['a'], authorizeParams: { audience: 'api' } },
      { clock, person, timeoutMs: undefined },
    );
    expect(kept).toMatchObject({ way: 'device', refreshToken: 'r' });
    expect(shown).toEqual([`${DEVICE.verification_uri} WDJB-MJHT ${DEVICE.verification_uri_complete}`]);
    expect(clock.slept).toEqual([3_000, 3_000, 8_000, 8_000]);
    const [{ form } = { form: new URLSearchParams() }] = world.server.of('POST /device');
    expect(Object.fromEntries(form)).toMatchObject({
      scope: 'a',
      audience: 'api',
      resource: world.target.resource,
    });
    const [{ body } = { body: '' }] = world.server.of('POST /register');
    expect(JSON.parse(body)).toMatchObject({ grant_types: [`${GRANT}device_code`, 'refresh_token'] });
  });

  test.each([
    ['a day', 86_400, [30_000]],
    ['more than a timer can', 2_147_484, [30_000]],
    ['no time', 0.001, Array.from({ length: 30 }, () => 1_000)],
  ])(
    'lasts as long as the person says, for a server that is to be asked after %s',
    async (_name, interval, slept) => {
      await using world = await startWorld();
      world.server.on.set('POST /device', () => ({ body: { ...DEVICE, interval } }));
      world.server.on.set('POST /token', () => ({ status: 400, body: { error: 'authorization_pending' } }));
      // What the requests take is no part of it.
      const clock = fastClock(() => 0);
      const services = { clock, person: { show() {}, showCode() {} }, timeoutMs: 30_000 };
      await expect(signInBy('device', world, {}, services)).rejects.toMatchObject({
        code: 'auth/sign-in-timeout',
      });
      expect(clock.slept).toEqual(slept);
    },
  );

  test.each([
    ['a code that nobody can type', { user_code: 'A'.repeat(101) }, 'auth/bad-answer'],
    ['an endless address', { verification_uri: `https://as.test/${'a'.repeat(9_000)}` }, 'auth/bad-metadata'],
    ['a program', { verification_uri: 'calc:' }, 'auth/bad-metadata'],
    ['a program with the code', { verification_uri_complete: 'calc:' }, 'auth/bad-metadata'],
  ])('shows nobody %s', async (_name, members, code) => {
    await using world = await startWorld();
    world.server.on.set('POST /device', () => ({ body: { ...DEVICE, ...members } }));
    const shown: unknown[] = [];
    const person = { show() {}, showCode: (...all: unknown[]) => void shown.push(all) };
    const failed = signInBy('device', world, {}, { clock: fastClock(), person });
    await expect(failed).rejects.toMatchObject({ code });
    expect(shown).toEqual([]);
  });

  test('registers a client of its own, which is not that of the browser', async () => {
    await using world = await startWorld();
    world.server.on.set('POST /device', () => ({ body: DEVICE }));
    const services = { clock: fastClock(), person: { show() {}, showCode() {} } };
    const kept = await signInBy('device', world, {}, services);
    expect((await signInBy('device', world, {}, { ...services, kept })).client.id).toBe(kept.client.id);
    const browsing = await signInBy('browser', world, {}, { person: browsingPerson(), kept });
    expect(browsing.client.id).not.toBe(kept.client.id);
    expect(browsing.client.registered?.callbackPort).toBeGreaterThan(0);
  });

  test.each([
    ['expired_token', 'auth/sign-in-timeout'],
    ['access_denied', 'auth/sign-in-refused'],
    ['authorization_pending', 'auth/sign-in-timeout'],
    ['temporarily_unavailable', 'auth/sign-in-timeout'],
  ])('an answer of %s in the end is %s', async (reason, code) => {
    await using world = await startWorld();
    world.server.on.set('POST /device', () => ({ body: { ...DEVICE, expires_in: 30 } }));
    world.server.on.set('POST /token', () => ({
      status: 400,
      body: { error: reason, error_description: 'device-secret' },
    }));
    const person = { show() {}, showCode() {} };
    const failed = await signInBy(
      'device',
      world,
      {},
      { clock: fastClock(), person, timeoutMs: undefined },
    ).catch((one: unknown) => one);
    expect(failed).toMatchObject({ code });
    expect(String(failed)).not.toContain('device-secret');
    await expect(signInBy('device', world)).rejects.toMatchObject({ code: 'auth/no-person' });
  });
});

describe('the ways without a person', () => {
  test('a service signs in with its secret, and never as a client that was made for it', async () => {
    await using world = await startWorld();
    const kept = await signInBy('client-credentials', world, {
      clientId: 'ci',
      clientSecret: 's3cret',
      scopes: ['a'],
    });
    expect(kept).toMatchObject({ way: 'client-credentials', client: { id: 'ci' }, scopes: ['a'] });
    const [{ form, headers } = { form: new URLSearchParams(), headers: {} }] = world.server.of('POST /token');
    expect(Object.fromEntries(form)).toMatchObject({
      grant_type: 'client_credentials',
      resource: world.target.resource,
    });
    expect(headers['authorization']).toBe(`Basic ${Buffer.from('ci:s3cret').toString('base64')}`);
    await expect(signInBy('client-credentials', world)).rejects.toMatchObject({ code: 'auth/client-needed' });
    expect(world.server.of('POST /register')).toEqual([]);
  });

  test('a client proves who it is with a private key', async () => {
    await using world = await startWorld();
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const clientKey = { pem, algorithm: 'ES256', keyId: 'one' };
    await signInBy('client-credentials', world, { clientId: 'ci', clientKey });
    const [{ form } = { form: new URLSearchParams() }] = world.server.of('POST /token');
    const proof = await jwtVerify(form.get('client_assertion') ?? '', publicKey, {
      issuer: 'ci',
      subject: 'ci',
      audience: world.server.origin,
    });
    expect(proof.protectedHeader).toMatchObject({ alg: 'ES256', kid: 'one' });
    const bad = { clientId: 'ci', clientKey: { pem: 'no key', algorithm: 'ES256' } };
    await expect(signInBy('client-credentials', world, bad)).rejects.toMatchObject({
      code: 'auth/client-refused',
      message: 'client "ci" lacks a private key for ES256 (PKCS #8, PEM)',
    });
  });

  test('an assertion that is given is sent once, and no other grant is tried when it is refused', async () => {
    await using world = await startWorld();
    const given = { clientId: 'workload', assertion: { kind: 'jwt', jwt: 'a.b.c' } } as const;
    await signInBy('assertion', world, given);
    expect(world.server.of('POST /token')[0]?.form.get('assertion')).toBe('a.b.c');
    world.server.on.set('POST /token', () => ({ status: 400, body: { error: 'invalid_grant' } }));
    await expect(signInBy('assertion', world, given)).rejects.toMatchObject({ code: 'auth/sign-in-refused' });
    expect(world.server.of('POST /token').map(({ form }) => form.get('grant_type'))).toEqual([
      `${GRANT}jwt-bearer`,
      `${GRANT}jwt-bearer`,
    ]);
  });

  test('an identity token is exchanged for an assertion at the identity provider, for this server and resource', async () => {
    await using world = await startWorld();
    await using provider = await startScripted();
    const type = 'urn:ietf:params:oauth:token-type:';
    provider.on.set('POST /token', () => ({
      body: { access_token: 'x.y.z', token_type: 'N_A', issued_token_type: `${type}id-jag`, expires_in: 300 },
    }));
    const assertion = {
      kind: 'identity',
      idToken: 'i.d.t',
      tokenUrl: `${provider.origin}/token`,
      clientId: 'at-idp',
    } as const;
    const given = { clientId: 'mine', clientSecret: 'my secret', assertion };
    await signInBy('assertion', world, given);
    const [{ form } = { form: new URLSearchParams() }] = provider.asked;
    expect(Object.fromEntries(form)).toMatchObject({
      grant_type: `${GRANT}token-exchange`,
      requested_token_type: `${type}id-jag`,
      subject_token: 'i.d.t',
      subject_token_type: `${type}id_token`,
      audience: world.server.origin,
      resource: world.target.resource,
      client_id: 'at-idp',
    });
    expect(world.server.of('POST /token')[0]?.form.get('assertion')).toBe('x.y.z');
    provider.on.set('POST /token', () => ({ body: { access_token: 'x.y.z', token_type: 'N_A' } }));
    await expect(signInBy('assertion', world, given)).rejects.toMatchObject({ code: 'auth/bad-answer' });
  });
});

describe('a resource whose tokens are bound to a key', () => {
  test.each<[SignInWay, Partial<SignInTarget>]>([
    ['device', {}],
    ['client-credentials', { clientId: 'ci', clientSecret: 's3cret' }],
    ['assertion', { clientId: 'ci', assertion: { kind: 'jwt', jwt: 'a.b.c' } }],
  ])('gets them by the way %s, and again with the same key', async (way, given) => {
    await using world = await startWorld();
    world.metadata['dpop_signing_alg_values_supported'] = ['ES256'];
    world.server.on.set('POST /device', () => ({ body: DEVICE }));
    world.server.on.set('POST /token', ({ headers }) => {
      const nonce = headers['dpop'] === undefined ? '' : decodeJwt(String(headers['dpop']))['nonce'];
      if (nonce === 'n') return { body: { ...tokens(undefined), token_type: 'DPoP' } };
      return { status: 400, headers: { 'dpop-nonce': 'n' }, body: { error: 'use_dpop_nonce' } };
    });
    const challenge = 'DPoP algs="ES256"';
    const services = { challenge, clock: fastClock(), person: { show() {}, showCode() {} } };
    const kept = await signInBy(way, world, given, services);
    const keys = () =>
      new Set(world.server.of('POST /token').map(({ headers }) => proofKeyOf(String(headers['dpop']))));
    expect(JSON.parse(kept.proofKey ?? '{}')).toMatchObject({ crv: 'P-256', d: expect.any(String) });
    expect(keys().size).toBe(1);
    if (way === 'device') return;
    await using again = servicesWith();
    const next = await refresh(kept, { ...again, target: given });
    expect(next.accessToken).not.toBe(kept.accessToken);
    expect(keys().size).toBe(1);
  });
});

test('such tokens are asked for again, though nobody asks the resource any more', async () => {
  await using world = await startWorld();
  world.metadata['dpop_signing_alg_values_supported'] = ['ES256'];
  world.server.on.set('POST /token', ({ headers }) => ({
    body: { ...tokens(undefined), token_type: headers['dpop'] === undefined ? 'bearer' : 'DPoP' },
  }));
  const service = { clientId: 'ci', clientSecret: 's3cret' };
  const challenge = 'DPoP algs="ES256"';
  const kept = await signInBy('client-credentials', world, service, { challenge });
  const named = { ...service, issuer: world.server.origin };
  expect((await signInBy('client-credentials', world, named, { kept })).proofKey).toBeDefined();
  const told = await signInBy('client-credentials', world, named, { kept, challenge: 'Bearer' });
  expect(told.proofKey).toBeUndefined();
  expect((await signInBy('client-credentials', world, named, {})).proofKey).toBeUndefined();
});

function proofKeyOf(proof: string): unknown {
  return JSON.stringify(decodeProtectedHeader(proof).jwk);
}

test.each<[string, SignInWay]>([
  ['POST /register', 'browser'],
  ['POST /token', 'browser'],
  ['POST /device', 'device'],
])('%s that redirects has nothing sent elsewhere', async (where, way) => {
  await using world = await startWorld();
  await using elsewhere = await startScripted();
  world.server.on.set(where, () => ({ status: 307, headers: { location: `${elsewhere.origin}/` } }));
  const person = { ...browsingPerson(), showCode() {} };
  await expect(signInBy(way, world, {}, { person, clock: fastClock() })).rejects.toMatchObject({
    code: 'auth/bad-answer',
  });
  expect(elsewhere.asked).toEqual([]);
});

describe('signing out', () => {
  test('of what nobody keeps goes on though its command has ended', async () => {
    await using world = await startWorld();
    const kept = await signInBy('browser', world, {}, { person: browsingPerson() });
    await using services = servicesWith({ signal: AbortSignal.abort() });
    await withdrawBeside(kept, undefined, services);
    expect(world.server.of('POST /revoke')).toHaveLength(2);
  });

  test('withdraws the refresh token and the access token, and says where it could not', async () => {
    await using world = await startWorld();
    const kept = await signInBy('client-credentials', world, { clientId: 'ci', clientSecret: 's3cret' });
    await using services = servicesWith();
    expect(await signOut(kept, services)).toBe(true);
    expect(world.server.of('POST /revoke').map(({ form }) => form.get('token'))).toEqual([
      kept.refreshToken,
      kept.accessToken,
    ]);
    world.server.asked.splice(0);
    // Many servers withdraw no token of one of the two kinds (RFC 7009 §2.2.1).
    world.server.on.set('POST /revoke', () => ({ status: 400, body: { error: 'unsupported_token_type' } }));
    expect(await signOut(kept, services)).toBe(false);
    expect(world.server.of('POST /revoke')).toHaveLength(2);
    world.server.on.set('POST /revoke', () => ({ status: 503 }));
    expect(await signOut(kept, services)).toBe(false);
    expect(await signOut({ ...kept, revocationEndpoint: undefined }, services)).toBe(false);
  });

  test.each([
    ['the same', {}, {}, 0],
    ['one person more that is known', {}, { subject: 'ann' }, 0],
    ['another person', { subject: 'ann' }, { subject: 'bob' }, 2],
    ['another client', {}, { client: { id: 'other', authMethod: 'none' as const } }, 2],
    ['another issuer', {}, { issuer: 'https://as.test' }, 2],
    ['nothing', {}, undefined, 2],
    ['nothing, where others may have its client', { client: { id: 'ci', authMethod: 'none' as const } }, undefined, 0],
    ['another issuer, where others may have its client', { client: { id: 'ci', authMethod: 'none' as const } }, { issuer: 'https://as.test' }, 0],
  ])('withdraws what is replaced by that of %s (%o → %o)', async (_what, before, now, times) => {
    await using world = await startWorld();
    const kept = await signInBy('browser', world, {}, { person: browsingPerson() });
    await using services = servicesWith();
    await withdrawBeside({ ...kept, ...before }, now && { ...kept, ...now }, services);
    expect(world.server.of('POST /revoke')).toHaveLength(times);
  }); // prettier-ignore
});
