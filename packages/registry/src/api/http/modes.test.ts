import { parseClaims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { afterAll, describe, expect, test } from 'vitest';
import { CONTRACT_SWITCHES, STRICT_SWITCHES, type SignInMode } from '../../access/authority.ts';
import type { AuthConfig } from '../../config/auth.ts';
import { apiUnderTest, bearer, oauthWith, type ApiUnderTest } from '../api.fixture.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedBundle, storedServer } from '../snapshot.fixture.ts';

// Modes, containment, order of checks and shadowing (docs/behaviour/registry.md#modes and below), over HTTP.

const key = await signingKey('k1');
const set = (claims: unknown): string => canonicalClaims(parseClaims(claims));

const opened: ApiUnderTest[] = [];
afterAll(() => Promise.all(opened.map((api) => api.close())));

async function api(auth: AuthConfig, snapshot = SNAPSHOT): Promise<ApiUnderTest> {
  const started = await apiUnderTest({ snapshot, auth, keys: [key], routes: READ_ROUTES });
  opened.push(started);
  return started;
}

const ROLES = { superAdmin: [parseClaims({ role: 'super-admin' })] };
const full = (switches = CONTRACT_SWITCHES): SignInMode => ({ kind: 'full', rules: ROLES, switches });

/** Names of one page, in order. */
const names = (body: string): string[] => {
  const page: Record<string, { name?: string; server?: { name: string; version: string } }[]> =
    JSON.parse(body);
  const items = page['servers'] ?? page['skills'] ?? page['plugins'] ?? [];
  return items.map((item) => item.server?.name ?? item.name ?? '');
};

const SNAPSHOT = snapshotOf(
  {
    main: [
      storedServer('acme/shared', ['1.0.0'], { claims: set({ org: 'acme' }) }),
      storedServer('acme/platform', ['1.0.0'], { claims: set({ org: 'acme', team: 'platform' }) }),
      storedServer('acme/both', ['1.0.0'], { claims: set({ team: ['platform', 'data'] }) }),
      storedServer('acme/unlabeled'),
      storedBundle('skill', ['io.acme', 'triage'], ['1.0.0'], { claims: set({ org: 'acme' }) }),
      storedBundle('skill', ['io.acme', 'secret-skill'], ['1.0.0'], { claims: set({ org: 'other' }) }),
      storedBundle('plugin', ['io.acme', 'linter'], ['1.0.0'], { claims: set({ org: 'acme' }) }),
    ],
  },
  [
    { name: 'open', sources: ['main'] },
    { name: 'acme', sources: ['main'], claims: set({ org: 'acme' }) },
    { name: 'platform', sources: ['main'], claims: set({ org: 'acme', team: 'platform' }) },
  ],
);
const ALL = ['acme/both', 'acme/platform', 'acme/shared', 'acme/unlabeled'];

/** A cursor that nobody was given. */
const after = (name: string): string => Buffer.from(`${name},1.0.0`).toString('base64url');

const READS = [
  '/open/v0.1/servers',
  '/open/v0.1/servers/acme%2Fshared/versions',
  '/open/v0.1/servers/acme%2Fshared/versions/latest',
  '/open/v0.1/x/dev.skep/skills',
  '/open/v0.1/x/dev.skep/skills/io.acme/triage',
  '/open/v0.1/x/dev.toolhive/plugins',
];

describe('anonymous mode', async () => {
  const anonymous = await api({ mode: 'anonymous', unusedRoles: ROLES, allowedHosts: [] });

  test('shows everything to everyone, past every gate', async () => {
    for (const registry of ['open', 'acme', 'platform']) {
      expect(names((await anonymous.get(`/${registry}/v0.1/servers`)).body)).toEqual(ALL);
    }
  });

  test.each(['Bearer nonsense', 'Basic eDp5', 'Bearer', ''])(
    'does not even read an Authorization header of "%s"',
    async (authorization) => {
      for (const url of READS) expect((await anonymous.get(url, { authorization })).statusCode).toBe(200);
    },
  );

  test('knows no callers and no way to sign in', async () => {
    const me = await anonymous.get('/v1/me', await bearer(key, {}));
    expect([me.statusCode, me.json(), me.headers['www-authenticate']]).toEqual([
      401,
      { error: 'authentication required' },
      undefined,
    ]);
    expect((await anonymous.get('/.well-known/oauth-protected-resource')).statusCode).toBe(404);
    expect((await anonymous.get('/.well-known/skep-registry')).statusCode).toBe(404);
  });
});

describe.each<[name: string, mode: SignInMode]>([
  ['auth-only mode', { kind: 'auth-only' }],
  ['full authorization', full()],
])('in %s without a token', async (_name, mode) => {
  const server = await api(oauthWith(mode));

  test.each([...READS, '/v1/me', '/', '/nothing', '/health', '/v1/anything', '/none/v0.1/servers?limit=x'])(
    '%s is 401 with a challenge, whether or not it exists',
    async (url) => {
      const answer = await server.get(url);
      expect([answer.statusCode, answer.json()]).toEqual([
        401,
        { error: 'missing or malformed authorization header' },
      ]);
      expect(answer.headers['www-authenticate']).toBe(
        'Bearer realm="mcp-registry", error="invalid_request", ' +
          'error_description="missing or malformed authorization header", ' +
          'resource_metadata="https://registry.test/.well-known/oauth-protected-resource"',
      );
      expect(answer.headers['cache-control']).toBe('no-store');
    },
  );

  test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'] as const)(
    '%s on a path that exists is 401 too',
    async (method) => {
      expect((await server.ask({ method, url: '/open/v0.1/servers' })).statusCode).toBe(401);
    },
  );

  test.each(['/nothing', '/open/v0.1/servers', '/v1/registries/x'])(
    'a large body to %s is 401 too',
    async (url) => {
      const payload = 'x'.repeat(2_000_000);
      expect((await server.ask({ method: 'POST', url, payload })).statusCode).toBe(401);
    },
  );

  test.each([
    ['/openapi.json', 200],
    ['/.well-known/oauth-protected-resource', 200],
    ['/.well-known/oauth-protected-resource/registry/acme', 200],
    ['/.well-known/oauth-protected-resource/registry/none', 200],
    ['/.well-known/anything', 404],
    ['/.well-known%2foauth-protected-resource', 401],
    ['/.well-knownx', 401],
  ])('%s is %i', async (url, status) => {
    expect((await server.get(url)).statusCode).toBe(status);
  });

  test('tells how to sign in, for the server and for one registry', async () => {
    const root = { authorization_servers: ['https://idp.test'], bearer_methods_supported: ['header'] };
    const base = '/.well-known/oauth-protected-resource';
    expect((await server.get(base)).json()).toEqual({ resource: 'https://registry.test', ...root });
    expect((await server.get(`${base}/registry/acme`)).json()).toEqual({
      resource: 'https://registry.test/registry/acme',
      ...root,
    });
    expect((await server.ask({ method: 'POST', url: base })).statusCode).toBe(405);
  });

  test.each(['', '/registry/acme', '/registry/none'])(
    'tells skep login all it needs and nothing of what there is, at "%s"',
    async (below) => {
      expect((await server.get(`/.well-known/skep-registry${below}`)).json()).toEqual({
        resource: 'https://registry.test',
        registries: 'https://registry.test/v1/registries',
        sign_in: [{ issuer: 'https://idp.test', client_id: 'skep', scopes: ['openid', 'offline_access'] }],
      });
    },
  );
});

test.each([
  ['https://registry.test/mcp', '/.well-known/skep-registry/mcp', 'https://registry.test/mcp'],
  ['https://registry.test/mcp', '/.well-known/skep-registry/mcp/registry/acme', 'https://registry.test/mcp'],
  ['https://registry.test/mcp', '/.well-known/skep-registry/other', undefined],
  [undefined, '/.well-known/skep-registry', undefined],
])('a server at %s answers %s for %s', async (url, asked, resource) => {
  const auth = oauthWith(full(), { resource: { url, realm: 'r', scopes: undefined } });
  const answer = await (await api(auth)).get(asked);
  expect(answer.statusCode).toBe(resource === undefined ? 404 : 200);
  if (resource !== undefined)
    expect(answer.json()).toMatchObject({ resource, registries: `${resource}/v1/registries` });
});

describe('auth-only mode with a token', async () => {
  const server = await api(oauthWith({ kind: 'auth-only' }));

  test('shows everything, past every gate, and has no roles', async () => {
    const anyone = await bearer(key, { org: 'elsewhere', role: 'super-admin' });
    for (const registry of ['open', 'acme', 'platform']) {
      expect(names((await server.get(`/${registry}/v0.1/servers`, anyone)).body)).toEqual(ALL);
    }
    expect((await server.get('/v1/me', anyone)).json()).toEqual({ subject: 'alice', roles: [] });
  });
});

describe('full authorization', async () => {
  const server = await api(oauthWith(full()));

  test.each<
    [who: string, claims: Record<string, unknown>, registry: string, seen: readonly string[] | number]
  >([
    ['the right org', { org: 'acme' }, 'acme', ['acme/shared']],
    ['org and team', { org: 'acme', team: 'platform' }, 'acme', ['acme/platform', 'acme/shared']],
    [
      'org and both teams',
      { org: 'acme', team: ['platform', 'data'] },
      'platform',
      ['acme/both', 'acme/platform', 'acme/shared'],
    ],
    ['org in an array', { org: ['x', 'acme'] }, 'acme', ['acme/shared']],
    ['nothing, at an open registry', {}, 'open', []],
    ['nothing, at a gate', {}, 'acme', 403],
    ['another org', { org: 'contoso', role: 'admin' }, 'acme', 403],
    ['the org without the team', { org: 'acme' }, 'platform', 403],
    ['a claim of another case', { Org: 'acme' }, 'acme', 403],
    ['a value of another case', { org: 'ACME' }, 'acme', 403],
    ['a number for a text', { org: 5 }, 'acme', 403],
    ['an object for a text', { org: { acme: true } }, 'acme', 403],
    ['super-admin', { role: 'super-admin' }, 'platform', ALL],
  ])('%s sees what its claims cover', async (_who, claims, registry, seen) => {
    const answer = await server.get(`/${registry}/v0.1/servers`, await bearer(key, claims));
    if (typeof seen === 'number') {
      expect([answer.statusCode, answer.json()]).toEqual([
        403,
        { error: 'forbidden: insufficient claims for registry' },
      ]);
      expect(answer.headers['www-authenticate']).toBeUndefined();
    } else expect(names(answer.body)).toEqual(seen);
  });

  test('answers in the order bad parameter, unknown registry, gate, entry', async () => {
    const outsider = await bearer(key, { org: 'contoso' });
    const status = async (url: string): Promise<number> => (await server.get(url, outsider)).statusCode;
    expect(await status('/none/v0.1/servers?limit=0')).toBe(400);
    expect(await status('/platform/v0.1/servers?limit=0')).toBe(400);
    expect(await status('/none/v0.1/servers')).toBe(404);
    expect(await status('/platform/v0.1/servers/none/versions/1')).toBe(403);
    expect(await status('/open/v0.1/servers/none/versions/1')).toBe(404);
  });

  test('answers for a hidden entry exactly as for one that does not exist', async () => {
    const caller = await bearer(key, { org: 'acme' });
    const pairs = [
      ['/acme/v0.1/servers/acme%2Fplatform/versions', '/acme/v0.1/servers/acme%2Fnone/versions'],
      [
        '/acme/v0.1/servers/acme%2Fplatform/versions/latest',
        '/acme/v0.1/servers/acme%2Fnone/versions/latest',
      ],
      ['/acme/v0.1/servers/acme%2Funlabeled/versions/1.0.0', '/acme/v0.1/servers/acme%2Fnone/versions/1.0.0'],
      ['/open/v0.1/x/dev.skep/skills/io.acme/secret-skill', '/open/v0.1/x/dev.skep/skills/io.acme/none'],
      [
        '/open/v0.1/x/dev.skep/skills/io.acme/secret-skill/versions',
        '/open/v0.1/x/dev.skep/skills/io.acme/none/versions',
      ],
      ['/acme/v0.1/servers?search=platform', '/acme/v0.1/servers?search=zzz'],
      [`/acme/v0.1/servers?cursor=${after('acme/platform')}`, `/acme/v0.1/servers?cursor=${after('acme/p')}`],
      [
        `/open/v0.1/x/dev.skep/skills?cursor=${after('io.acme/secret-skill')}`,
        `/open/v0.1/x/dev.skep/skills?cursor=${after('io.acme/secret-none')}`,
      ],
      ['/acme/v0.1/servers?version=1.0.0&search=unlabeled', '/acme/v0.1/servers?version=1.0.0&search=zzz'],
    ] as const;
    for (const [hidden, missing] of pairs) {
      const [one, other] = [await server.get(hidden, caller), await server.get(missing, caller)];
      const own = { 'x-request-id': '', date: '' };
      expect([one.statusCode, one.body]).toEqual([other.statusCode, other.body]);
      expect({ ...one.headers, ...own }).toEqual({ ...other.headers, ...own });
    }
  });

  test('tells by no tag and no 200 that something hidden has changed', async () => {
    const hidden = set({ org: 'other' });
    const seen = [
      storedServer('acme/shared', ['1.0.0'], { claims: set({ org: 'acme' }) }),
      storedBundle('skill', ['io.acme', 'triage'], ['1.0.0'], { claims: set({ org: 'acme' }) }),
    ];
    const registries = [{ name: 'open', sources: ['main'] }];
    const more = [
      storedServer('acme/secret', ['1.0.0'], { claims: hidden }),
      storedBundle('skill', ['io.acme', 'secret'], ['1.0.0'], { claims: hidden }),
    ];
    const changing = await api(oauthWith(full()), snapshotOf({ main: seen }, registries));
    const caller = await bearer(key, { org: 'acme' });
    for (const url of [
      '/open/v0.1/servers',
      '/open/v0.1/servers?search=secret',
      '/open/v0.1/servers/acme%2Fshared/versions',
      '/open/v0.1/x/dev.skep/skills',
      '/open/v0.1/x/dev.skep/skills/io.acme/triage/versions',
    ]) {
      changing.serve(snapshotOf({ main: seen }, registries));
      const before = await changing.get(url, caller);
      changing.serve(snapshotOf({ main: [...seen, ...more] }, registries));
      const after = await changing.get(url, caller);
      expect([url, after.headers['etag'], after.body]).toEqual([url, before.headers['etag'], before.body]);
      const asked = { ...caller, 'if-none-match': String(before.headers['etag']) };
      expect([url, (await changing.get(url, asked)).statusCode]).toEqual([url, 304]);
    }
  });

  test('gives callers who see the same things the same tag, and others another', async () => {
    const tag = async (claims: Record<string, unknown>): Promise<unknown> =>
      (await server.get('/open/v0.1/servers', await bearer(key, claims))).headers['etag'];
    expect(await tag({ org: 'acme', sub: 'one' })).toBe(await tag({ org: ['acme', 'x'], sub: 'two' }));
    expect(await tag({ org: 'acme' })).not.toBe(await tag({ org: 'acme', team: 'platform' }));
  });

  test("does not answer 304 for another caller's tag", async () => {
    const mine = await bearer(key, { org: 'acme' });
    const theirs = await server.get('/open/v0.1/servers', await bearer(key, { role: 'super-admin' }));
    const headers = { ...mine, 'if-none-match': String(theirs.headers['etag']) };
    expect((await server.get('/open/v0.1/servers', headers)).statusCode).toBe(200);
  });

  test('lets no shared cache keep or mix answers', async () => {
    const answer = await server.get('/open/v0.1/servers', await bearer(key, { org: 'acme' }));
    expect(answer.headers).toMatchObject({ 'cache-control': 'private, no-cache', vary: 'Authorization' });
    const me = await server.get('/v1/me', await bearer(key, { role: 'super-admin' }));
    expect(me.headers['cache-control']).toBe('private, no-store');
    expect(me.json()).toEqual({ subject: 'alice', roles: ['superAdmin'] });
  });

  test('closes with empty authz to everyone but nobody', async () => {
    const closed = await api(oauthWith({ kind: 'full', rules: {}, switches: CONTRACT_SWITCHES }));
    const admin = await bearer(key, { role: 'super-admin' });
    expect(names((await closed.get('/open/v0.1/servers', admin)).body)).toEqual([]);
    expect((await closed.get('/v1/me', admin)).json()).toEqual({ subject: 'alice', roles: [] });
  });

  test('has a strict preset: any element of a list suffices, and what has no claims is closed', async () => {
    const strict = await api(oauthWith(full(STRICT_SWITCHES)));
    const caller = await bearer(key, { org: 'acme', team: 'platform' });
    expect(names((await strict.get('/acme/v0.1/servers', caller)).body)).toEqual([
      'acme/both',
      'acme/platform',
      'acme/shared',
    ]);
    expect((await strict.get('/open/v0.1/servers', caller)).statusCode).toBe(403);
  });
});

describe('shadowing (promotion matrix)', () => {
  const COPIES = ['a', 'b', 'c'] as const;
  const rows = Array.from({ length: 2 ** COPIES.length }, (_, bits) =>
    COPIES.filter((_copy, index) => (bits & (1 << index)) !== 0),
  );

  test.each(rows.map((seen) => [seen.join('') || 'none', seen] as const))(
    'with the copies %s visible, the first of them is served with all its versions',
    async (_name, seen) => {
      const sources = Object.fromEntries(
        COPIES.map((copy, index) => [
          copy,
          [
            storedServer('x/tool', [`${index + 1}.0.0`, `0.${9 - index}.0`], {
              claims: set({ [copy]: 'yes' }),
            }),
            storedBundle('skill', ['io.x', 'tool'], [`${index + 1}.0.0`], {
              claims: set({ [copy]: 'yes' }),
            }),
          ],
        ]),
      );
      const server = await api(oauthWith(full()), snapshotOf(sources));
      const caller = await bearer(key, Object.fromEntries(seen.map((copy) => [copy, 'yes'])));
      const [winner] = seen;
      const index = winner === undefined ? -1 : COPIES.indexOf(winner);
      const versions = winner === undefined ? [] : [`0.${9 - index}.0`, `${index + 1}.0.0`];
      const listed = async (url: string): Promise<string[]> => {
        const page = (await server.get(url, caller)).json();
        return page.servers.map((item) => item.server.version);
      };
      expect(await listed('/all/v0.1/servers')).toEqual(versions);
      expect(await listed('/all/v0.1/servers/x%2Ftool/versions')).toEqual(versions);
      expect(await listed('/all/v0.1/servers?version=latest')).toEqual(versions.slice(1));
      for (const [other, copy] of COPIES.entries()) {
        const version = `${other + 1}.0.0`;
        const url = `/all/v0.1/servers/x%2Ftool/versions/${version}`;
        expect((await server.get(url, caller)).statusCode).toBe(copy === winner ? 200 : 404);
        // A filter does not bring a shadowed copy back.
        expect(await listed(`/all/v0.1/servers?version=${version}`)).toEqual(
          copy === winner ? [version] : [],
        );
      }
      const latest = await server.get('/all/v0.1/x/dev.skep/skills/io.x/tool', caller);
      expect(latest.statusCode === 200 ? latest.json().version : undefined).toBe(versions[1]);
    },
  );

  test.each<[who: string, auth: AuthConfig, claims: Record<string, unknown>]>([
    ['super-admins', oauthWith(full()), { role: 'super-admin', c: 'yes' }],
    ['everyone in auth-only mode', oauthWith({ kind: 'auth-only' }), { c: 'yes' }],
    ['everyone in anonymous mode', { mode: 'anonymous', unusedRoles: {}, allowedHosts: [] }, {}],
  ])('serves the first copy to %s, once', async (_who, auth, claims) => {
    const copy = (version: string, held: string) => [storedServer('x/tool', [version], { claims: held })];
    const sources = { a: copy('1.0.0', ''), b: copy('2.0.0', ''), c: copy('3.0.0', set({ c: 'yes' })) };
    const server = await api(auth, snapshotOf(sources));
    const page = (await server.get('/all/v0.1/servers', await bearer(key, claims))).json();
    expect(page.servers.map((item: { server: { version: string } }) => item.server.version)).toEqual([
      '1.0.0',
    ]);
  });
});
