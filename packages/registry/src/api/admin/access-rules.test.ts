import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AdminUnderTest, adminUnderTest, type CallerName, source } from './admin.fixture.ts';

// Switches and rules of access (docs/behaviour/registry.md#switches, docs/behaviour/registry.md#administration) that are about the admin API, over HTTP. What is
// about reading stands in modes.test.ts, about tokens in tokens.test.ts, about endpoints and modes in access-matrix.test.ts;
// the tables of containment and roles stand beside `covers` and `resolveRoles`.

const ACME = { org: 'acme' };
const OTHER = { org: 'other' };
const FILE = { file: { path: '/data/x.json' }, syncPolicy: { interval: '5m' } };
const LACKING = 'insufficient claims: caller claims do not cover resource claims';
const NO_ROLE = 'forbidden: insufficient permissions';

type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';
type Row = readonly [
  rule: string,
  as: CallerName,
  method: Method,
  url: string,
  body: unknown,
  status: number,
  error: string | undefined,
];

const running: AdminUnderTest[] = [];
afterAll(() => Promise.all(running.map((one) => one.close())));

async function started(...options: Parameters<typeof adminUnderTest>): Promise<AdminUnderTest> {
  const admin = await adminUnderTest(...options);
  running.push(admin);
  return admin;
}

async function check(admin: AdminUnderTest, [, as, method, url, body, status, error]: Row): Promise<void> {
  const before = await admin.state();
  const response = await admin.send(method, url, { as, ...(body === undefined ? {} : { body }) });
  const said: unknown = error === undefined ? undefined : response.json().error;
  expect([response.statusCode, said]).toEqual([status, error]);
  if (status >= 400) expect(await admin.state()).toBe(before);
}

/** Sources and registries are scoped alike; `mine` and `theirs` were made through the API, `fixed` by the configuration. */
const KINDS = [
  {
    kind: 'sources',
    one: 'source',
    body: (claims?: object) => ({ ...FILE, ...(claims === undefined ? {} : { claims }) }),
  },
  {
    kind: 'registries',
    one: 'registry',
    body: (claims?: object) => ({ sources: ['internal'], ...(claims === undefined ? {} : { claims }) }),
  },
] as const;

describe.each(KINDS)('scoping of $kind', ({ kind, one, body }) => {
  let admin: AdminUnderTest;
  beforeAll(async () => {
    const internal = source('internal', { kind: 'managed', config: '{}', interval: null });
    const fixed = source('fixed', { claims: '{"org":["acme"]}' });
    const registries = [{ name: 'fixed', sources: ['internal'], claims: '{"org":["acme"]}' }];
    admin = await started({ sources: [internal, fixed], registries });
    for (const [name, claims] of [
      ['mine', ACME],
      ['theirs', OTHER],
      ['open', undefined],
    ] as const) {
      const made = await admin.send('PUT', `/v1/${kind}/${name}`, { body: body(claims) });
      expect(made.statusCode).toBe(201);
    }
  });

  test('list: a row that is not satisfied is left out, and is all that differs', async () => {
    const names = async (as: CallerName): Promise<string[]> =>
      (await admin.send('GET', `/v1/${kind}`, { as })).json()[kind].map(({ name }) => name);
    const all = kind === 'sources' ? ['fixed', 'internal', 'mine', 'open', 'theirs'] : [];
    const shown = all.length > 0 ? all : ['fixed', 'mine', 'open', 'theirs'];
    expect(await names('root')).toEqual(shown);
    expect(await names('admin')).toEqual(shown.filter((name) => name !== 'theirs'));
    expect(await names('outsider')).toEqual(shown.filter((name) => name !== 'mine' && name !== 'fixed'));
  });

  test.each(['', '/entries'])('get%s: a hidden one is 404 in the words for a missing one', async (rest) => {
    for (const [as, hidden] of [
      ['admin', 'theirs'],
      ['outsider', 'mine'],
    ] as const) {
      const seen = await admin.send('GET', `/v1/${kind}/${hidden}${rest}`, { as });
      const none = await admin.send('GET', `/v1/${kind}/absent${rest}`, { as });
      expect([seen.statusCode, seen.json().error]).toEqual([404, `${one} not found: ${hidden}`]);
      expect([none.statusCode, none.json().error]).toEqual([404, `${one} not found: absent`]);
    }
  });

  const at = (name: string): string => `/v1/${kind}/${name}`;
  test.each<Row>([
    ['create: claims that are not held', 'admin', 'PUT', at('new'), body(OTHER), 403, LACKING],
    [
      'create: a list of which not all is held',
      'admin',
      'PUT',
      at('new'),
      body({ team: ['platform', 'x'] }),
      403,
      LACKING,
    ],
    ['update: the existing is not satisfied', 'admin', 'PUT', at('theirs'), body(ACME), 403, LACKING],
    ['update: the new is not held', 'admin', 'PUT', at('mine'), body(OTHER), 403, LACKING],
    ['delete: the existing is not satisfied', 'admin', 'DELETE', at('theirs'), undefined, 403, LACKING],
    ['delete: a missing one', 'admin', 'DELETE', at('absent'), undefined, 404, `${one} not found: absent`],
    [
      'configuration: not even for super-admins (update)',
      'root',
      'PUT',
      at('fixed'),
      body(ACME),
      403,
      `cannot modify config-created ${one} via API: fixed`,
    ],
    [
      'configuration: not even for super-admins (delete)',
      'root',
      'DELETE',
      at('fixed'),
      undefined,
      403,
      `cannot delete config-created ${one} via API: fixed`,
    ],
    ['create: claims that are held', 'admin', 'PUT', at('held'), body(ACME), 201, undefined],
    ['create: no claims', 'admin', 'PUT', at('none'), body(), 201, undefined],
    ['update: one of two claims dropped', 'admin', 'PUT', at('mine'), body(ACME), 200, undefined],
    ['super-admin: anything', 'root', 'PUT', at('theirs'), body({ org: 'elsewhere' }), 200, undefined],
    ['delete: the existing is satisfied', 'admin', 'DELETE', at('mine'), undefined, 204, undefined],
  ])('%s', (...row) => check(admin, row));

  test('claims dropped: the last one only by super-admins', async () => {
    const [drop, refused] = [body(), await admin.send('PUT', at('held'), { as: 'admin', body: body() })];
    expect(refused.statusCode).toBe(403);
    expect((await admin.send('PUT', at('held'), { body: drop })).statusCode).toBe(200);
  });
});

describe('sources of a registry', () => {
  let admin: AdminUnderTest;
  beforeAll(async () => {
    admin = await started();
  });

  const put = (sources: readonly string[]) => ['admin', 'PUT', '/v1/registries/new', { sources }] as const;
  test.each<Row>([
    [
      'every one must be satisfied',
      ...put(['internal', 'foreign']),
      403,
      'insufficient claims: cannot reference source foreign',
    ],
    ['every one must exist', ...put(['internal', 'absent']), 400, 'source not found: absent'],
    ['satisfied ones may be named', ...put(['internal', 'catalog']), 201, undefined],
  ])('%s', (...row) => check(admin, row));
});

describe('a missing role is all that a caller learns', () => {
  let admin: AdminUnderTest;
  beforeAll(async () => {
    admin = await started();
  });

  test.each<Row>([
    ['neither role nor claims', 'reader', 'GET', '/v1/sources/foreign', undefined, 403, NO_ROLE],
    ['before existence', 'reader', 'DELETE', '/v1/sources/absent', undefined, 403, NO_ROLE],
    ['before parameters', 'reader', 'GET', '/v1/sources/%20', undefined, 403, NO_ROLE],
    ['before queries', 'reader', 'GET', '/v1/sources?limit=x', undefined, 403, NO_ROLE],
    ['before the body', 'reader', 'PUT', '/v1/sources/x', '{', 403, NO_ROLE],
    ['before the registry of the path', 'reader', 'POST', '/absent/v0.1/publish', '{', 403, NO_ROLE],
    ['before the gate', 'reader', 'POST', '/foreign-all/v0.1/publish', '{', 403, NO_ROLE],
    ['one role is not another', 'admin', 'POST', '/v1/entries', '{', 403, NO_ROLE],
    ['nor the other way round', 'writer', 'GET', '/v1/sources', undefined, 403, NO_ROLE],
    [
      'publishing: the registry before its gate',
      'writer',
      'POST',
      '/absent/v0.1/publish',
      '{',
      404,
      'registry not found',
    ],
    [
      'publishing: the gate before the body',
      'writer',
      'POST',
      '/foreign-all/v0.1/publish',
      '{',
      403,
      'forbidden: insufficient claims for registry',
    ],
    [
      'without a token not even that',
      'nobody',
      'GET',
      '/v1/sources',
      undefined,
      401,
      'missing or malformed authorization header',
    ],
  ])('%s', (...row) => check(admin, row));
});

describe('switches', () => {
  const server = (name: string) => ({ name, version: '1', description: 'd' });
  const wrapped = (name: string, claims?: object) => ({
    server: server(name),
    ...(claims === undefined ? {} : { claims }),
  });
  let admin: AdminUnderTest;
  let strict: AdminUnderTest;
  beforeAll(async () => {
    admin = await started();
    strict = await started({ switches: { preset: 'strict' } });
    for (const one of [admin, strict]) {
      const body = wrapped('io.acme/any', { org: ['acme', 'other'] });
      expect((await one.send('POST', '/v1/entries', { body })).statusCode).toBe(201);
    }
  });

  const gone = 'invalid server name: the name must have the form namespace/name';
  test.each<Row>([
    ['prefixed path', 'reader', 'GET', '/registry/acme-all/v0.1/servers', undefined, 200, undefined],
    ['root path', 'reader', 'GET', '/acme-all/v0.1/servers', undefined, 200, undefined],
    ['door of a registry', 'writer', 'POST', '/open/v0.1/publish', server('io.acme/a'), 201, undefined],
    ['door of the server', 'writer', 'POST', '/v1/entries', wrapped('io.acme/b', ACME), 201, undefined],
    ['claims may be omitted', 'writer', 'POST', '/v1/entries', wrapped('io.acme/c'), 201, undefined],
    ['a registry without claims is open', 'outsider', 'GET', '/open/v0.1/servers', undefined, 200, undefined],
    ['a source without claims is open', 'outsider', 'GET', '/v1/sources/internal', undefined, 200, undefined],
    [
      'an entry without claims is hidden',
      'writer',
      'GET',
      '/open/v0.1/servers/io.acme%2Fc/versions/1',
      undefined,
      404,
      'not found',
    ],
    [
      'all of a list',
      'reader',
      'GET',
      '/open/v0.1/servers/io.acme%2Fany/versions/1',
      undefined,
      404,
      'not found',
    ],
    [
      'claims of the managed source do not count',
      'outsider',
      'POST',
      '/v1/entries',
      wrapped('io.other/d', OTHER),
      201,
      undefined,
    ],
    [
      'a source may name its format',
      'admin',
      'PUT',
      '/v1/sources/formatted',
      { ...FILE, format: 'toolhive' },
      201,
      undefined,
    ],
    [
      'a bare name at the door of a registry',
      'writer',
      'POST',
      '/open/v0.1/publish',
      { ...server('bare'), claims: ACME },
      201,
      undefined,
    ],
    [
      'a bare name is served',
      'writer',
      'GET',
      '/open/v0.1/servers/bare/versions/1',
      undefined,
      200,
      undefined,
    ],
    ['a bare name at the door of the server', 'writer', 'POST', '/v1/entries', wrapped('bare'), 400, gone],
    ['registries without a role', 'reader', 'GET', '/v1/registries/open', undefined, 200, undefined],
  ])('%s', (...row) => check(admin, row));

  test.each<Row>([
    [
      'claims are required, of super-admins too',
      'root',
      'POST',
      '/v1/entries',
      wrapped('io.acme/c'),
      400,
      'claims are required when authorization is enabled',
    ],
    [
      'a registry without claims is closed',
      'outsider',
      'GET',
      '/open/v0.1/servers',
      undefined,
      403,
      'forbidden: insufficient claims for registry',
    ],
    [
      'a source without claims is hidden',
      'outsider',
      'GET',
      '/v1/sources/internal',
      undefined,
      404,
      'source not found: internal',
    ],
    [
      'any of a list',
      'reader',
      'GET',
      '/acme-all/v0.1/servers/io.acme%2Fany/versions/1',
      undefined,
      200,
      undefined,
    ],
    [
      'a managed source without claims is closed',
      'writer',
      'POST',
      '/v1/entries',
      wrapped('io.acme/d', ACME),
      403,
      undefined,
    ],
  ])('strict: %s', (...row) => check(strict, row));

  test.each(['v1', 'registry', 'openapi.json', '.well-known', 'health', 'readiness', 'version', 'metrics'])(
    '%s is no registry, for nobody and at no door',
    async (word) => {
      for (const [method, rest] of [
        ['GET', 'servers'],
        ['GET', 'servers/a/versions'],
        ['GET', 'x/dev.skep/skills'],
        ['POST', 'publish'],
        ['DELETE', 'servers/a/versions/1'],
      ] as const) {
        const response = await admin.send(method, `/${word}/v0.1/${rest}`, { body: {} });
        expect([rest, response.statusCode, response.json().error]).toEqual([rest, 404, 'no such endpoint']);
      }
      const body = { sources: ['internal'] };
      expect((await admin.send('PUT', `/v1/registries/${word}`, { body })).statusCode).toBe(400);
    },
  );

  test('nobody has a role in auth-only mode', async () => {
    const open = await started({ mode: 'auth-only' });
    expect((await open.send('GET', '/v1/me', { as: 'root' })).json()).toMatchObject({ roles: [] });
    expect((await admin.send('GET', '/v1/me', { as: 'root' })).json()).toMatchObject({
      roles: ['superAdmin'],
    });
  });

  test('rows of a registry carry claims', async () => {
    const { entries } = (await admin.send('GET', '/v1/registries/open/entries')).json();
    expect(entries).toContainEqual(expect.objectContaining({ name: 'io.acme/b', claims: ACME }));
  });
});
