import { describe, expect, test } from 'vitest';
import { silentLog } from '@skep/core/log/log.ts';
import { discover, type Discovered } from './discover.ts';
import type { SignInServices, SignInTarget } from './port.ts';
import { probe } from './probe.ts';
import { openReach } from './reach.ts';
import { documents, servicesWith, startScripted, startWorld } from './world.fixture.ts';

async function find(
  target: SignInTarget,
  services: SignInServices,
  way: 'browser' | 'device' = 'browser',
): Promise<Discovered> {
  const reach = openReach(target, services);
  return discover(target, way, { ...services, reach });
}

/** The metadata of an authorization server, as little as there must be. */
function server(issuer: string, changes: object = {}): Response {
  return Response.json({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    code_challenge_methods_supported: ['S256'],
    ...changes,
  });
}

const WELL_KNOWN = '.well-known';
const REMOTE = { resource: 'https://mcp.test/team/mcp' };
const challengeFor = (address: string): string => `Bearer resource_metadata="${address}"`;

describe('where an authorization server is looked for', () => {
  test.each([
    [
      'by the metadata that the challenge names',
      'https://mcp.test/meta',
      { 'https://mcp.test/meta': 'https://as.test' },
    ],
    [
      'by the metadata at the path',
      undefined,
      { [`https://mcp.test/${WELL_KNOWN}/oauth-protected-resource/team/mcp`]: 'https://as.test' },
    ],
    [
      'by the metadata of the host',
      undefined,
      { [`https://mcp.test/${WELL_KNOWN}/oauth-protected-resource`]: 'https://as.test' },
    ],
    [
      'by the well-known place where the challenge leads nowhere',
      'https://mcp.test/gone',
      { [`https://mcp.test/${WELL_KNOWN}/oauth-protected-resource`]: 'https://as.test' },
    ],
  ])('%s', async (_name, told, resources) => {
    const fetch = documents({
      ...Object.fromEntries(
        Object.entries(resources).map(([address, issuer]) => [
          address,
          () => Response.json({ resource: REMOTE.resource, authorization_servers: [issuer] }),
        ]),
      ),
      [`https://as.test/${WELL_KNOWN}/oauth-authorization-server`]: () => server('https://as.test'),
    });
    await using services = servicesWith({ fetch });
    const challenge = told === undefined ? 'Bearer' : challengeFor(told);
    const found = await find(REMOTE, { ...services, challenge });
    expect(found).toMatchObject({
      server: { issuer: 'https://as.test' },
      resourceIndicator: REMOTE.resource,
    });
  });

  test('at the host of the resource where nothing names another, and by the realm before that', async () => {
    const fetch = documents({
      [`https://mcp.test/${WELL_KNOWN}/oauth-authorization-server`]: () => server('https://mcp.test'),
      [`https://realm.test/${WELL_KNOWN}/oauth-authorization-server/a`]: () => server('https://realm.test/a'),
    });
    await using services = servicesWith({ fetch });
    const own = await find(REMOTE, { ...services, challenge: 'Bearer' });
    expect(own.server.issuer).toBe('https://mcp.test');
    const realm = await find(REMOTE, { ...services, challenge: 'Bearer realm="https://realm.test/a?x#y"' });
    expect(realm.server.issuer).toBe('https://realm.test/a');
    const text = await find(REMOTE, { ...services, challenge: 'Bearer realm="http://realm.test/a"' });
    expect(text.server.issuer).toBe('https://mcp.test');
  });

  test('at three addresses for an issuer with a path, in order, the next server after one that is of no use', async () => {
    const fetch = documents({
      'https://mcp.test/meta': () =>
        Response.json({
          resource: 'https://mcp.test',
          authorization_servers: ['https://bad.test', 'https://as.test/t'],
        }),
      [`https://bad.test/${WELL_KNOWN}/oauth-authorization-server`]: () => server('https://evil.test'),
      [`https://as.test/t/${WELL_KNOWN}/openid-configuration`]: () => server('https://as.test/t'),
    });
    await using services = servicesWith({ fetch });
    const found = await find(REMOTE, { ...services, challenge: challengeFor('https://mcp.test/meta') });
    expect(found).toMatchObject({ isOpenId: true, resourceIndicator: 'https://mcp.test' });
    expect(found.scopes).toEqual(['openid', 'profile', 'email']);
    expect(fetch.asked.filter((url) => url.startsWith('https://as.test'))).toEqual([
      `https://as.test/${WELL_KNOWN}/oauth-authorization-server/t`,
      `https://as.test/${WELL_KNOWN}/openid-configuration/t`,
      `https://as.test/t/${WELL_KNOWN}/openid-configuration`,
      `https://as.test/${WELL_KNOWN}/oauth-authorization-server/t`,
    ]);
  });

  test('an OpenID provider registers clients where only its other document says so', async () => {
    let asked = 0;
    const fetch = documents({
      [`https://as.test/${WELL_KNOWN}/openid-configuration`]: () => server('https://as.test'),
      [`https://as.test/${WELL_KNOWN}/oauth-authorization-server`]: () =>
        (asked += 1) === 1
          ? new Response('busy', { status: 503 })
          : server('https://as.test', { registration_endpoint: 'https://as.test/register' }),
    });
    await using services = servicesWith({ fetch });
    const found = await find({ ...REMOTE, issuer: 'https://as.test' }, services);
    expect(found.server.registration_endpoint).toBe('https://as.test/register');
  });

  test('an OpenID provider that does not say which PKCE it knows is good for what assumes S256, and for nothing else', async () => {
    const says = { methods: undefined as readonly string[] | undefined, at: 'openid-configuration' };
    const at = (place: string) => () =>
      says.at === place
        ? server('https://as.test', { code_challenge_methods_supported: says.methods })
        : new Response(null, { status: 404 });
    const fetch = documents({
      [`https://as.test/${WELL_KNOWN}/openid-configuration`]: at('openid-configuration'),
      [`https://as.test/${WELL_KNOWN}/oauth-authorization-server`]: at('oauth-authorization-server'),
    });
    await using services = servicesWith({ fetch });
    const target = { ...REMOTE, issuer: 'https://as.test' };
    const found = await find({ ...target, assumesPkce: true }, services);
    expect(found.server.issuer).toBe('https://as.test');
    await expect(find(target, services)).rejects.toThrow('does not say that it knows PKCE with S256');
    says.methods = ['plain'];
    await expect(find({ ...target, assumesPkce: true }, services)).rejects.toThrow('PKCE with S256');
    Object.assign(says, { methods: undefined, at: 'oauth-authorization-server' });
    await expect(find({ ...target, assumesPkce: true }, services)).rejects.toThrow('PKCE with S256');
  });

  test('what the operator names is not asked for, and the resource is only asked what it is', async () => {
    const fetch = documents({
      [`https://as.test/${WELL_KNOWN}/oauth-authorization-server`]: () => server('https://as.test'),
      [`https://mcp.test/${WELL_KNOWN}/oauth-protected-resource`]: () =>
        Response.json({ resource: 'https://evil.test', authorization_servers: ['https://evil.test'] }),
    });
    await using services = servicesWith({ fetch });
    const found = await find({ ...REMOTE, issuer: 'https://as.test' }, services);
    expect(found).toMatchObject({
      server: { issuer: 'https://as.test' },
      resourceIndicator: REMOTE.resource,
    });
    expect(fetch.asked).not.toContain(expect.stringContaining('evil'));
  });
});

describe('metadata that is not believed', () => {
  const META = 'https://mcp.test/meta';
  const about = (resource: string, issuer = 'https://as.test') => ({
    [META]: () => Response.json({ resource, authorization_servers: [issuer] }),
  });

  test.each([
    'https://evil.test/team/mcp',
    'http://mcp.test/team/mcp',
    'https://mcp.test/team/mc',
    'https://mcp.test/team/mcp/other',
    'https://mcp.test/team/mcp#x',
    'nothing',
  ])('a resource that says that it is %s', async (resource) => {
    const fetch = documents(about(resource));
    await using services = servicesWith({ fetch });
    await expect(find(REMOTE, { ...services, challenge: challengeFor(META) })).rejects.toMatchObject({
      code: 'auth/bad-metadata',
    });
    expect(fetch.asked).toEqual([META]);
  });

  test.each<[string, object, string]>([
    ['about another issuer', { issuer: 'https://evil.test' }, 'its metadata is about another issuer'],
    ['without PKCE', { code_challenge_methods_supported: undefined }, 'PKCE'],
    ['with plain PKCE alone', { code_challenge_methods_supported: ['plain'] }, 'PKCE'],
    ['without an endpoint for browsers', { authorization_endpoint: undefined }, 'authorization_endpoint'],
    ['with an endpoint that is no URL', { token_endpoint: 'token' }, 'token_endpoint'],
    [
      'with an endpoint of endless length',
      { token_endpoint: `https://as.test/${'a'.repeat(9_000)}` },
      'its token_endpoint is a very long address',
    ],
    [
      'with a registration of endless length',
      { registration_endpoint: `https://as.test/${'a'.repeat(9_000)}` },
      'its registration_endpoint is a very long address',
    ],
  ])('a server %s', async (_name, changes, said) => {
    const fetch = documents({
      ...about(REMOTE.resource),
      [`https://as.test/${WELL_KNOWN}/oauth-authorization-server`]: () => server('https://as.test', changes),
    });
    await using services = servicesWith({ fetch });
    await expect(find(REMOTE, { ...services, challenge: challengeFor(META) })).rejects.toMatchObject({
      code: 'auth/bad-metadata',
      message: expect.stringContaining(said) as string,
    });
  });

  test('a server whose address is endless is not asked, and is not told at full length', async () => {
    const fetch = documents(about(REMOTE.resource, `https://as.test/${'a'.repeat(9_000)}`));
    await using services = servicesWith({ fetch });
    const failed = await find(REMOTE, { ...services, challenge: challengeFor(META) }).catch(
      (error: unknown) => error,
    );
    expect(failed).toMatchObject({ code: expect.stringMatching(/^auth\//u) as string });
    expect(String(failed).length).toBeLessThan(1_000);
    expect(fetch.asked.filter((url) => url.length > 8_000)).toEqual([]);
  });

  test('an issuer is not another one with a slash more, but for a host alone', async () => {
    const address = `https://as.test/${WELL_KNOWN}/oauth-authorization-server`;
    const fetch = documents({
      [`${address}/a`]: () => server('https://as.test/a/'),
      [address]: () => server('https://as.test/'),
    });
    await using services = servicesWith({ fetch });
    await expect(find({ ...REMOTE, issuer: 'https://as.test/a' }, services)).rejects.toMatchObject({
      code: 'auth/bad-metadata',
    });
    await expect(find({ ...REMOTE, issuer: 'https://as.test' }, services)).resolves.toBeDefined();
  });

  test('private addresses that a server names are not asked, unless the operator named a private one', async () => {
    const told = challengeFor('https://meta.internal/meta');
    const answers = {
      'https://meta.internal/meta': () =>
        Response.json({ resource: REMOTE.resource, authorization_servers: ['https://as.internal'] }),
      [`https://mcp.test/${WELL_KNOWN}/oauth-protected-resource`]: () =>
        Response.json({ resource: REMOTE.resource, authorization_servers: ['https://as.internal'] }),
      [`https://as.internal/${WELL_KNOWN}/oauth-authorization-server`]: () => server('https://as.internal'),
    };
    const fetch = documents(answers);
    await using services = servicesWith({ fetch, log: silentLog });
    await expect(find(REMOTE, { ...services, challenge: told })).rejects.toMatchObject({
      message: expect.stringContaining('not allowed') as string,
    });
    expect(fetch.asked.filter((url) => url.includes('.internal'))).toEqual([]);
    const named = await find(
      { ...REMOTE, issuer: 'https://as.internal', mayBePrivate: { resource: false, issuer: true } },
      services,
    );
    expect(named.server.issuer).toBe('https://as.internal');
    const own = { resource: 'https://mcp.internal/mcp', mayBePrivate: { resource: true, issuer: false } };
    const inside = documents({
      ...answers,
      [`https://mcp.internal/${WELL_KNOWN}/oauth-protected-resource`]: () =>
        Response.json({ resource: own.resource, authorization_servers: ['https://as.internal'] }),
    });
    const found = await find(own, { ...services, fetch: inside, challenge: 'Bearer' });
    expect(found.server.issuer).toBe('https://as.internal');
  });

  test('private ones are for whoever was told so to allow, however names are answered now', async () => {
    await using world = await startWorld();
    await using services = servicesWith({ challenge: 'Bearer' });
    const { resource } = world.target;
    await expect(find({ resource }, services)).rejects.toMatchObject({ code: 'auth/no-sign-in' });
    expect(await probe({ resource }, services)).toMatchObject({
      kind: 'unknown',
      reason: expect.stringContaining('is not public'),
    });
    const named = { resource: REMOTE.resource, issuer: world.server.origin };
    const offline = { ...services, fetch: { ...services.fetch, resource: documents({}).resource } };
    await expect(find(named, offline)).rejects.toMatchObject({ code: 'auth/bad-metadata' });
    expect([...world.resource.asked, ...world.server.asked]).toEqual([]);
    const mayBePrivate = { resource: false, issuer: true };
    expect((await find({ ...named, mayBePrivate }, offline)).server.issuer).toBe(world.server.origin);
    await expect(find({ resource, mayBePrivate }, services)).rejects.toMatchObject({
      code: 'auth/no-sign-in',
    });
    expect(world.resource.asked).toEqual([]);
  });

  test('a resource that asks for passwords, or for nothing that leads anywhere, offers no sign-in', async () => {
    await using services = servicesWith({ fetch: documents({}) });
    await expect(find(REMOTE, { ...services, challenge: 'Bearer' })).rejects.toMatchObject({
      code: 'auth/no-sign-in',
    });
    await using world = await startWorld();
    world.resource.on.set('GET /mcp', () => ({
      status: 401,
      headers: { 'www-authenticate': 'Basic realm="x"' },
    }));
    await using real = servicesWith();
    await expect(find(world.target, real)).rejects.toMatchObject({ code: 'auth/no-sign-in' });
  });
});

describe('documents from real servers', () => {
  test.each<
    [string, (other: string) => { status?: number; headers?: Record<string, string>; body?: string }]
  >([
    ['that redirect to another host', (other) => ({ status: 302, headers: { location: `${other}/meta` } })],
    ['that redirect for ever', () => ({ status: 302, headers: { location: '/meta' } })],
    ['of 10 MB', () => ({ body: `{"resource":"${'x'.repeat(10 * 1024 * 1024)}"}` })],
    ['that are no JSON', () => ({ body: '<html>' })],
    ['that are a list', () => ({ body: '[]' })],
    ['that are gone', () => ({ status: 410 })],
    ['of a server that fails', () => ({ status: 500, body: '{"resource":"http://localhost/"}' })],
  ])('%s are passed over, and the well-known place is asked', async (_name, answer) => {
    await using world = await startWorld();
    await using elsewhere = await startScripted();
    world.resource.on.set('GET /meta', () => answer(elsewhere.origin));
    await using services = servicesWith({ challenge: challengeFor(`${world.resource.origin}/meta`) });
    const found = await find(world.target, services);
    expect(found.server.issuer).toBe(world.server.origin);
    expect(elsewhere.asked).toEqual([]);
    expect(world.resource.of('GET /meta').length).toBeLessThanOrEqual(11);
  });

  test('that never end are given up', async () => {
    await using world = await startWorld();
    world.resource.on.set('GET /meta', () => new Promise(() => undefined));
    await using services = servicesWith({ challenge: challengeFor(`${world.resource.origin}/meta`) });
    const found = await find(world.target, services);
    expect(found.server.issuer).toBe(world.server.origin);
  });

  test('are waited for no longer than somebody wants to', async () => {
    await using world = await startWorld();
    const abort = new AbortController();
    for (const path of ['oauth-authorization-server', 'oauth-protected-resource'])
      world.resource.on.set(`GET /${WELL_KNOWN}/${path}`, () => new Promise(() => undefined));
    world.resource.on.set(`GET /${WELL_KNOWN}/oauth-protected-resource/mcp`, () => {
      abort.abort(new Error('Ctrl-C'));
      return new Promise(() => undefined);
    });
    await using services = servicesWith({ challenge: 'Bearer', signal: abort.signal });
    await expect(find(world.target, services)).rejects.toThrow('Ctrl-C');
    expect(world.resource.asked).toHaveLength(1);
  });

  test('that redirect on the same host are followed', async () => {
    await using world = await startWorld();
    const place = `/${WELL_KNOWN}/oauth-protected-resource/mcp`;
    const good = world.resource.on.get(`GET ${place}`);
    world.resource.on.set('GET /moved', () => good?.({} as never) ?? {});
    world.resource.on.set(`GET ${place}`, () => ({ status: 307, headers: { location: '/moved' } }));
    await using services = servicesWith();
    const found = await find(world.target, services);
    expect(found.resourceIndicator).toBe(world.target.resource);
  });
});
