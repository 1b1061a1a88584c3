import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { listen } from '@skep/core/fetch/listen.ts';
import { forged } from '../token/tokens.fixture.ts';
import type { KeptSignIn, SignInServices, SignInTarget } from './port.ts';
import { signIn } from './sign-in.ts';
import { browsingPerson, comeBack, servicesWith, startWorld, tokens, type World } from './world.fixture.ts';

/** Signs in with a browser that says yes. */
async function browse(
  world: World,
  given: Partial<SignInTarget> = {},
  changes: Partial<SignInServices> = {},
): Promise<KeptSignIn> {
  await using services = servicesWith({ person: browsingPerson(), ...changes });
  return signIn({ ...world.target, ...given }, 'browser', services);
}

describe('the sign-in by browser', () => {
  test('finds the server, registers, sends PKCE, state and resource, and gives what is to be kept', async () => {
    await using world = await startWorld();
    const kept = await browse(world);
    const [registered] = world.server.of('POST /register');
    expect(JSON.parse(registered?.body ?? '')).toMatchObject({
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [expect.stringMatching(/^http:\/\/localhost:\d+\/callback$/u)],
    });
    const [authorize] = world.server.of('GET /authorize');
    const asked = Object.fromEntries(authorize?.url.searchParams ?? []);
    expect(asked).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      resource: world.target.resource,
    });
    expect(asked['scope']).toBeUndefined();
    expect(Buffer.from(asked['state'] ?? '', 'base64url').length).toBeGreaterThanOrEqual(16);
    const [{ form } = { form: new URLSearchParams() }] = world.server.of('POST /token');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    expect(challenge).toBe(asked['code_challenge']);
    expect(Object.fromEntries(form)).toMatchObject({
      grant_type: 'authorization_code',
      code: 'code-1234',
      resource: world.target.resource,
      client_id: kept.client.id,
      redirect_uri: asked['redirect_uri'],
    });
    expect(kept).toMatchObject({
      version: 1,
      way: 'browser',
      issuer: world.server.origin,
      tokenEndpoint: `${world.server.origin}/token`,
      mayBePrivate: true,
      refreshToken: world.refreshToken(),
    });
    expect((kept.expiresAt ?? 0) - (kept.obtainedAt ?? 0)).toBe(3_600_000);
  });

  test('nothing that the operator adds to the address replaces what protects the sign-in', async () => {
    await using world = await startWorld();
    const authorizeParams = {
      prompt: 'consent',
      state: 'mine',
      redirect_uri: 'https://evil.test/',
      code_challenge_method: 'plain',
    };
    await browse(world, { authorizeParams, scopes: ['a', 'b'], scopeParamName: 'user_scope' });
    const [{ url } = { url: new URL('a:') }] = world.server.of('GET /authorize');
    const asked = Object.fromEntries(url.searchParams);
    expect(asked).toMatchObject({ prompt: 'consent', user_scope: 'a b', code_challenge_method: 'S256' });
    expect(asked['state']).not.toBe('mine');
    expect(asked['redirect_uri']).toContain('localhost');
    expect(asked['scope']).toBeUndefined();
  });

  test.each<[string, (world: World) => void]>([
    [
      'a login, which looks like another host',
      ({ metadata, server }) =>
        void (metadata['authorization_endpoint'] =
          `http://accounts.test@${new URL(server.origin).host}/authorize`),
    ],
    [
      'scopes without end',
      ({ resource, target, server }) =>
        void resource.on.set('GET /.well-known/oauth-protected-resource/mcp', () => ({
          body: {
            resource: target.resource,
            authorization_servers: [server.origin],
            scopes_supported: ['a'.repeat(40_000)],
          },
        })),
    ],
  ])('shows nobody an address with %s', async (_name, change) => {
    await using world = await startWorld();
    change(world);
    const shown: string[] = [];
    const person = { show: (address: string) => void shown.push(address) };
    await expect(browse(world, {}, { person, timeoutMs: 100 })).rejects.toMatchObject({
      code: 'auth/bad-metadata',
    });
    expect(shown).toEqual([]);
  });

  test('names no resource where the operator says so', async () => {
    await using world = await startWorld();
    const kept = await browse(world, { resourceIndicator: '' });
    expect(kept.resourceIndicator).toBeUndefined();
    const asked = [...world.server.of('GET /authorize'), ...world.server.of('POST /token')];
    expect(asked.some(({ url, form }) => url.searchParams.has('resource') || form.has('resource'))).toBe(
      false,
    );
  });

  test('works with the endpoints alone, for servers without metadata', async () => {
    await using world = await startWorld();
    const { origin } = world.server;
    world.server.on.set('POST /token', () => ({
      body: { ...tokens('r'), id_token: 'not.checked.here' },
    }));
    const kept = await browse(world, {
      authorizeUrl: `${origin}/authorize`,
      tokenUrl: `${origin}/token`,
      clientId: 'my-client',
      clientSecret: 'my secret',
    });
    expect(kept).toMatchObject({
      client: { id: 'my-client', authMethod: 'client_secret_basic' },
      refreshToken: 'r',
    });
    expect(world.server.asked.map(({ url }) => url.pathname)).toEqual(['/authorize', '/token']);
    expect(world.resource.of('GET /mcp')).toEqual([]);
    const [asked] = world.server.of('POST /token');
    expect(asked?.headers['authorization']).toBe(
      `Basic ${Buffer.from('my-client:my+secret').toString('base64')}`,
    );
  });

  test('asks for the given scopes, else those of the challenge, else those of the resource', async () => {
    await using world = await startWorld();
    const scopeOf = async (given: Partial<SignInTarget>, changes: Partial<SignInServices> = {}) => {
      await browse(world, given, changes);
      return world.server.of('GET /authorize').at(-1)?.url.searchParams.get('scope');
    };
    expect(await scopeOf({})).toBeNull();
    const { resource } = world.target;
    world.resource.on.set('GET /.well-known/oauth-protected-resource/mcp', () => ({
      body: { resource, authorization_servers: [world.server.origin], scopes_supported: ['read', 'write'] },
    }));
    expect(await scopeOf({})).toBe('read write');
    world.metadata['scopes_supported'] = ['read', 'offline_access'];
    expect(await scopeOf({})).toBe('read write offline_access');
    const challenge = 'Bearer scope="only"';
    expect(await scopeOf({}, { challenge })).toBe('only offline_access');
    expect(await scopeOf({ scopes: ['mine'] }, { challenge })).toBe('mine');
  });

  test('asks for all that was granted and what more is wanted, at most twice', async () => {
    await using world = await startWorld();
    const challenge = 'Bearer error="insufficient_scope", scope="write"';
    const first = await browse(world, {}, { challenge: 'Bearer scope="read"' });
    const second = await browse(world, {}, { challenge, kept: first });
    expect(second).toMatchObject({ scopes: ['read', 'write'], stepUp: { times: 1 } });
    const third = await browse(world, {}, { challenge, kept: second });
    expect(third.stepUp).toEqual({ scopes: ['read', 'write'], times: 2 });
    await expect(browse(world, {}, { challenge, kept: third })).rejects.toMatchObject({
      code: 'auth/insufficient-scope',
    });
    const asked = await browse(world, {}, { challenge: 'Bearer', kept: { ...third, wanted: ['write'] } });
    expect(asked.scopes).toEqual(['read', 'write']);
    expect(asked.wanted).toBeUndefined();
    const more = await browse(world, {}, { challenge: challenge.replace('write', 'admin'), kept: third });
    expect(more.stepUp).toEqual({ scopes: ['read', 'write', 'admin'], times: 1 });
  });

  test('asks for the scopes that are given beside those that the server wants more', async () => {
    await using world = await startWorld();
    const first = await browse(world, {}, { challenge: 'Bearer scope="read"' });
    const kept = { ...first, wanted: ['write'] };
    const { scopes } = await browse(world, { scopes: ['mine'] }, { challenge: 'Bearer', kept });
    expect(scopes).toEqual(['read', 'mine', 'write']);
  });

  test('a port that is taken is replaced for a client that is registered now, and named for any other', async () => {
    await using world = await startWorld();
    const taken = createServer();
    const callbackPort = await listen(taken, '127.0.0.1', 0);
    try {
      const kept = await browse(world, { callbackPort });
      expect(kept.client.registered?.callbackPort).not.toBe(callbackPort);
      await expect(browse(world, { callbackPort, clientId: 'mine' })).rejects.toMatchObject({
        code: 'auth/callback-port',
        message: expect.stringContaining(`port ${callbackPort}`) as string,
      });
    } finally {
      taken.close();
    }
  });

  test('ends when nobody comes back, and when it is aborted, with the reason', async () => {
    await using world = await startWorld();
    const nobody = { show() {} };
    await expect(browse(world, {}, { person: nobody, timeoutMs: 50 })).rejects.toMatchObject({
      code: 'auth/sign-in-timeout',
      message: 'nobody signed in within 50ms',
    });
    const abort = new AbortController();
    const person = { show: () => abort.abort(new Error('Ctrl-C')) };
    await expect(browse(world, {}, { person, signal: abort.signal })).rejects.toThrow('Ctrl-C');
    await expect(browse(world, {}, { person: undefined })).rejects.toMatchObject({ code: 'auth/no-person' });
  });

  test.each([
    ['of another issuer', { iss: 'https://evil.test' }, 'auth/sign-in-refused'],
    ['with the issuer in another spelling', { iss: undefined }, 'auth/sign-in-refused'],
    ['without a code', { code: undefined }, 'auth/bad-answer'],
    [
      'that is an error',
      { code: undefined, error: 'access_denied', error_description: '<b>no</b>' },
      'auth/sign-in-refused',
    ],
    ['that is an outage', { code: undefined, error: 'temporarily_unavailable' }, 'auth/unavailable'],
  ])('an answer %s ends it before any code is sent', async (_name, changes, code) => {
    await using world = await startWorld();
    world.metadata['authorization_response_iss_parameter_supported'] = true;
    world.server.on.set('GET /authorize', ({ url }) => comeBack(url, world.server.origin, changes));
    const person = browsingPerson();
    await expect(browse(world, {}, { person })).rejects.toMatchObject({ code });
    expect(world.server.of('POST /token')).toEqual([]);
    const page = await person.pages[0];
    expect(page).toMatchObject({
      status: 400,
      text: expect.stringContaining('You are not signed in') as string,
    });
    expect(page?.text).not.toContain('<b>');
  });
});

describe('an identity token', () => {
  const answerWith = (world: World, changes: object): void => {
    const seconds = Math.floor(Date.now() / 1_000);
    const claims = {
      iss: world.server.origin,
      aud: 'mine',
      sub: 'alice',
      iat: seconds,
      exp: seconds + 60,
      ...changes,
    };
    const id_token = forged({ alg: 'RS256' }, claims);
    world.server.on.set('POST /token', () => ({ body: { ...tokens('r'), id_token } }));
  };

  test('says who signed in, by a clock that may be some minutes off', async () => {
    await using world = await startWorld();
    answerWith(world, { exp: Math.floor(Date.now() / 1_000) - 240 });
    expect(await browse(world, { clientId: 'mine' })).toMatchObject({ subject: 'alice' });
  });

  test.each([
    ['of another time', { exp: 1_000 }, 'compare its clock with that of this machine'],
    ['of another issuer', { iss: 'https://evil.test' }, 'the standard does not allow'],
    ['for another client', { aud: 'other' }, 'the standard does not allow'],
  ])('%s ends the sign-in', async (_name, changes, said) => {
    await using world = await startWorld();
    answerWith(world, changes);
    await expect(browse(world, { clientId: 'mine' })).rejects.toMatchObject({
      code: 'auth/bad-answer',
      message: expect.stringContaining(said) as string,
    });
  });
});

test.each(['file:///etc/passwd', 'javascript:alert(1)', 'ms-settings:x', '\u001B[31m:'])(
  'nobody is sent to %j',
  async (page) => {
    await using world = await startWorld();
    world.metadata['authorization_endpoint'] = page;
    world.metadata['device_authorization_endpoint'] = `${world.server.origin}/device`;
    const shown: string[] = [];
    const person = { show: (address: string) => void shown.push(address) };
    await expect(browse(world, {}, { person })).rejects.toMatchObject({ code: 'auth/bad-metadata' });
    expect(shown).toEqual([]);
  },
);

test('a token that is said to last for ever lasts ten years', async () => {
  await using world = await startWorld();
  world.life = Number.MAX_SAFE_INTEGER;
  const { expiresAt = 0, obtainedAt = 0 } = await browse(world);
  expect(expiresAt - obtainedAt).toBe(315_360_000_000);
  expect(new Date(expiresAt).toISOString()).toMatch(/^20/u);
});

describe('the client identity', () => {
  test('of an earlier sign-in is used again with the same server, on its port', async () => {
    await using world = await startWorld();
    const first = await browse(world);
    const second = await browse(world, {}, { kept: first });
    expect(second.client).toEqual(first.client);
    expect(world.server.of('POST /register')).toHaveLength(1);
  });

  test('of another server is never shown', async () => {
    await using world = await startWorld();
    const first = await browse(world);
    const kept = { ...first, issuer: 'https://other.test', client: { ...first.client, id: 'theirs' } };
    const second = await browse(world, {}, { kept });
    expect(second.client.id).not.toBe('theirs');
    expect(JSON.stringify(world.server.asked.map(({ url }) => url.href))).not.toContain('theirs');
  });

  test.each([
    ['at the token endpoint', 'POST /token'],
    ['in the browser', 'GET /authorize'],
  ])('that its server has forgotten, told %s, is registered anew once', async (_name, where) => {
    await using world = await startWorld();
    const first = await browse(world);
    const good = world.server.on.get(where);
    world.server.on.set(where, (asked) => {
      const id = asked.form.get('client_id') ?? asked.url.searchParams.get('client_id');
      if (id !== first.client.id) return good?.(asked) ?? {};
      if (where === 'GET /authorize')
        return comeBack(asked.url, world.server.origin, { code: undefined, error: 'unauthorized_client' });
      return {
        status: 401,
        headers: { 'www-authenticate': 'Basic realm="x"' },
        body: { error: 'invalid_client' },
      };
    });
    const second = await browse(world, {}, { kept: first });
    expect(second.client.id).not.toBe(first.client.id);
    expect(world.server.of('POST /register')).toHaveLength(2);
    world.server.on.set('POST /token', () => ({ status: 401, body: { error: 'invalid_client' } }));
    await expect(browse(world, {}, { kept: second })).rejects.toMatchObject({ code: 'auth/client-refused' });
    expect(world.server.of('POST /register')).toHaveLength(3);
  });

  test('is a document where one is known and the server reads such, and a registration where it refuses it', async () => {
    await using world = await startWorld();
    world.metadata['client_id_metadata_document_supported'] = true;
    const clientMetadataUrl = 'https://skep.test/client.json';
    const kept = await browse(world, { clientMetadataUrl });
    expect(kept.client).toMatchObject({ id: clientMetadataUrl, authMethod: 'none' });
    expect(world.server.of('POST /register')).toEqual([]);
    world.server.on.set('GET /authorize', ({ url }) =>
      url.searchParams.get('client_id') === clientMetadataUrl
        ? comeBack(url, world.server.origin, { code: undefined, error: 'invalid_client' })
        : comeBack(url, world.server.origin),
    );
    const other = await browse(world, { clientMetadataUrl });
    expect(other.client.id).toMatch(/^client-/u);
  });

  describe('that is given as the address of a document', () => {
    const clientId = 'https://skep.test/client.json';
    const refusing = (world: World, error: string): void =>
      void world.server.on.set('GET /authorize', ({ url }) =>
        url.searchParams.get('client_id') === clientId
          ? comeBack(url, world.server.origin, { code: undefined, error })
          : comeBack(url, world.server.origin),
      );

    test.each(['invalid_client', 'unauthorized_client'])(
      'is a registration where the server reads documents, and refuses this one: %s',
      async (error) => {
        await using world = await startWorld();
        world.metadata['client_id_metadata_document_supported'] = true;
        const read = await browse(world, { clientId });
        expect(read.client).toEqual({ id: clientId, authMethod: 'none' });
        expect(world.server.of('POST /register')).toEqual([]);
        refusing(world, error);
        const { client } = await browse(world, { clientId });
        expect(client.id).toMatch(/^client-/u);
        world.metadata['registration_endpoint'] = undefined;
        await expect(browse(world, { clientId })).rejects.toMatchObject({ code: 'auth/client-refused' });
      },
    );

    test('is a registration where the server reads none, which is used again, and shown to nobody there', async () => {
      await using world = await startWorld();
      const first = await browse(world, { clientId });
      expect(first.client.id).toMatch(/^client-/u);
      expect((await browse(world, { clientId }, { kept: first })).client).toEqual(first.client);
      expect(world.server.of('POST /register')).toHaveLength(1);
      const ended = { ...first.client, registered: { secretExpiresAt: Date.now() } };
      const register = world.server.on.get('POST /register');
      world.server.on.set('POST /register', () => ({ status: 403 }));
      const last = await browse(world, { clientId }, { kept: { ...first, client: ended } });
      expect(last.client.id).toBe(clientId);
      world.server.asked.splice(0);
      world.server.on.set('POST /register', register ?? (() => ({})));
      expect((await browse(world, { clientId })).client.id).toMatch(/^client-/u);
      expect(world.server.asked.map(({ url }) => url.searchParams.get('client_id'))).not.toContain(clientId);
    });

    test.each<[string, Partial<SignInTarget>, (world: World) => void]>([
      ['where nobody registers clients', {}, ({ metadata }) => (metadata['registration_endpoint'] = undefined)],
      ['where clients are registered for others', {}, ({ server }) => server.on.set('POST /register', () => ({ status: 403 }))],
      ['with a secret', { clientSecret: 's' }, () => undefined],
      ['without a path', { clientId: 'https://skep.test' }, () => undefined],
      ['in the clear', { clientId: 'http://skep.test/client.json' }, () => undefined],
    ])('is as it was given %s', async (_name, given, change) => {
      await using world = await startWorld();
      change(world);
      const { client } = await browse(world, { clientId, ...given });
      expect(client.id).toBe(given.clientId ?? clientId);
    }); // prettier-ignore
  });

  test('whose secret ends within a day is registered anew, and the old one stays as it was', async () => {
    await using world = await startWorld();
    const uri = `${world.server.origin}/register/1`;
    const registered = { uri, token: 'registration-token', secretExpiresAt: Date.now() + 3_600_000 };
    const first = await browse(world);
    const client = { id: 'old', secret: 's', authMethod: 'client_secret_basic', registered } as const;
    const second = await browse(world, {}, { kept: { ...first, client } });
    expect(second.client.id).toMatch(/^client-/u);
    expect(world.server.asked.filter(({ url }) => url.href === uri)).toEqual([]);
  });

  test.each([
    ['without an origin', '/register/abc', '/register/abc'],
    ['that is none', 'http://[', undefined],
    ['of another host', 'https://elsewhere.test/register/abc', undefined],
    ['of another host, without a scheme', '//elsewhere.test/register/abc', undefined],
    ['of another port', 'http://localhost:1/register/abc', undefined],
  ])('has an address %s, and is used again', async (_name, told, path) => {
    await using world = await startWorld();
    world.server.on.set('POST /register', ({ body }) => ({
      status: 201,
      body: {
        ...(JSON.parse(body) as object),
        client_id: 'mine',
        registration_client_uri: told,
        registration_access_token: 'registration-token',
      },
    }));
    world.server.on.set('GET /register/abc', () => ({ body: {} }));
    const first = await browse(world);
    expect(first.client.registered?.uri).toBe(path && `${world.server.origin}${path}`);
    const broken = { ...first.client, registered: { ...first.client.registered, uri: '/register/abc' } };
    for (const kept of [first, { ...first, client: broken }])
      expect((await browse(world, {}, { kept })).client.id).toBe('mine');
    expect(world.server.of('POST /register')).toHaveLength(1);
  });

  test.each<[string, unknown]>([
    ['no JSON', '<html>'],
    ['a list', []],
    ['no id', { client_id: undefined }],
    ['an id that is no text', { client_id: 7 }],
    ['an empty id', { client_id: '' }],
    ['an id of endless length', { client_id: 'x'.repeat(40_000) }],
    ['a secret that is no text', { client_secret: 7 }],
    ['an end that is no number', { client_secret: 's', client_secret_expires_at: 'never' }],
    ['more than anybody reads', { client_name: 'x'.repeat(2 ** 20) }],
  ])('that is answered with %s is none, and nobody is sent anywhere', async (_name, members) => {
    await using world = await startWorld();
    const isMembers = typeof members === 'object' && !Array.isArray(members);
    world.server.on.set('POST /register', ({ body }) => ({
      status: 201,
      body: isMembers ? { ...(JSON.parse(body) as object), client_id: 'new', ...members } : members,
    }));
    const shown: string[] = [];
    const person = { show: (address: string) => void shown.push(address) };
    const failed = browse(world, {}, { person, timeoutMs: 100 });
    await expect(failed).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:auth\/bad-answer|auth\/bad-metadata|fetch\/too-large)$/u),
    });
    expect(shown).toEqual([]);
  });

  test('may have members without a value', async () => {
    await using world = await startWorld();
    world.server.on.set('POST /register', ({ body }) => ({
      status: 201,
      body: {
        ...(JSON.parse(body) as object),
        client_id: 'new',
        client_secret: null,
        client_secret_expires_at: null,
      },
    }));
    expect((await browse(world)).client).toMatchObject({ id: 'new', authMethod: 'none' });
  });

  test('that its server has forgotten is registered anew before anybody is sent there', async () => {
    await using world = await startWorld();
    const uri = `${world.server.origin}/register/1`;
    const first = await browse(world);
    const client = { ...first.client, registered: { uri, token: 'registration-token' } };
    world.server.on.set('GET /register/1', () => ({ body: {} }));
    expect((await browse(world, {}, { kept: { ...first, client } })).client.id).toBe(first.client.id);
    world.server.on.set('GET /register/1', () => ({ status: 503 }));
    expect((await browse(world, {}, { kept: { ...first, client } })).client.id).toBe(first.client.id);
    world.server.on.set('GET /register/1', () => ({ status: 401 }));
    expect((await browse(world, {}, { kept: { ...first, client } })).client.id).not.toBe(first.client.id);
  });

  test('that was registered for less is registered for all that is asked', async () => {
    await using world = await startWorld();
    const first = await browse(world, { scopes: ['a', 'b'] });
    expect(first.client.registered?.scopes).toEqual(['a', 'b']);
    const second = await browse(world, { scopes: ['b'] }, { kept: first });
    expect(second.client.id).toBe(first.client.id);
    const third = await browse(world, { scopes: ['a', 'b', 'c'] }, { kept: second });
    expect(third.client.id).not.toBe(first.client.id);
    expect(third.client.registered?.scopes).toEqual(['a', 'b', 'c']);
  });

  test.each([
    ['basic', ['client_secret_basic'], 'client_secret_basic'],
    ['post', ['client_secret_post'], 'client_secret_post'],
    ['none among others', ['client_secret_post', 'none'], 'none'],
  ])('is registered with the method that the server takes: %s', async (_name, methods, method) => {
    await using world = await startWorld();
    world.metadata['token_endpoint_auth_methods_supported'] = methods;
    world.server.on.set('POST /register', ({ body }) => ({
      status: 200,
      body: { ...(JSON.parse(body) as object), client_id: 'new', client_secret: 'its secret' },
    }));
    const { client } = await browse(world);
    expect(client.authMethod).toBe(method);
    const [{ form, headers } = { form: new URLSearchParams(), headers: {} }] = world.server.of('POST /token');
    expect(form.get('client_secret')).toBe(method === 'client_secret_post' ? 'its secret' : null);
    expect(headers['authorization']?.startsWith('Basic ') ?? false).toBe(method === 'client_secret_basic');
  });

  test.each([404, 405, 501])('that nobody gives is asked for: registration answers %i', async (status) => {
    await using world = await startWorld();
    world.server.on.set('POST /register', () => ({ status }));
    await expect(browse(world)).rejects.toMatchObject({ code: 'auth/client-needed' });
    delete world.metadata['registration_endpoint'];
    world.metadata['registration_endpoint'] = undefined;
    await expect(browse(world)).rejects.toMatchObject({ code: 'auth/client-needed' });
  });
});
