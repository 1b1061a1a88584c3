import { afterEach, describe, expect, test } from 'vitest';
import { type AdminUnderTest, adminUnderTest, type CallerName, type ModeName } from './admin.fixture.ts';

// docs/behaviour/registry.md#modes for every endpoint, row by row.

type Operation = readonly [method: 'GET' | 'PUT' | 'POST' | 'DELETE', url: string, body?: object];

/** Anonymous · auth-only without token · auth-only · full without token · full: all right · claims fail · role missing. */
type Statuses = readonly [number, number, number, number, number, number, number | undefined];

const ACME = { org: 'acme' };
const FILE = { file: { path: '/data/x.json' }, syncPolicy: { interval: '5m' } };
const server = (version: string): object => ({ name: 'io.acme/x', version, description: 'd' });

const COLUMNS: readonly [title: string, mode: ModeName, as: CallerName][] = [
  ['anonymous', 'anonymous', 'nobody'],
  ['auth-only, no token', 'auth-only', 'nobody'],
  ['auth-only', 'auth-only', 'outsider'],
  ['full, no token', 'full', 'nobody'],
  ['full, role and claims', 'full', 'both'],
  ['full, claims fail', 'full', 'outsider'],
  ['full, role missing', 'full', 'reader'],
];

const ROWS: readonly (readonly [title: string, operation: Operation, statuses: Statuses])[] = [
  ['consumer list', ['GET', '/acme-all/v0.1/servers'], [200, 401, 200, 401, 200, 403, 200]],
  ['consumer get', ['GET', '/open/v0.1/servers/io.acme%2Fx/versions/1'], [200, 401, 200, 401, 200, 404, 200]],
  [
    'consumer versions',
    ['GET', '/acme-all/v0.1/servers/io.acme%2Fx/versions'],
    [200, 401, 200, 401, 200, 403, 200],
  ],
  ['consumer skills', ['GET', '/acme-all/v0.1/x/dev.skep/skills'], [200, 401, 200, 401, 200, 403, 200]],
  ['consumer plugins', ['GET', '/acme-all/v0.1/x/dev.toolhive/plugins'], [200, 401, 200, 401, 200, 403, 200]],
  [
    'publish at the door of a registry',
    ['POST', '/open/v0.1/publish', { ...server('2'), claims: ACME }],
    [201, 401, 201, 401, 201, 403, 403],
  ],
  [
    'publish',
    ['POST', '/v1/entries', { server: server('2'), claims: ACME }],
    [201, 401, 201, 401, 201, 403, 403],
  ],
  [
    'delete a version',
    ['DELETE', '/v1/entries/server/io.acme%2Fx/versions/1'],
    [204, 401, 204, 401, 204, 403, 403],
  ],
  [
    'delete a version at the door of a registry',
    ['DELETE', '/open/v0.1/servers/io.acme%2Fx/versions/1'],
    [204, 401, 204, 401, 204, 403, 403],
  ],
  [
    'read entry claims',
    ['GET', '/v1/entries/server/io.acme%2Fx/claims'],
    [200, 401, 200, 401, 200, 403, 403],
  ],
  [
    'replace entry claims',
    ['PUT', '/v1/entries/server/io.acme%2Fx/claims', { claims: ACME }],
    [204, 401, 204, 401, 204, 403, 403],
  ],
  ['list sources', ['GET', '/v1/sources'], [200, 401, 200, 401, 200, 200, 403]],
  ['read a source', ['GET', '/v1/sources/mine'], [200, 401, 200, 401, 200, 404, 403]],
  ['list entries of a source', ['GET', '/v1/sources/mine/entries'], [200, 401, 200, 401, 200, 404, 403]],
  [
    'replace a source',
    ['PUT', '/v1/sources/mine', { ...FILE, claims: ACME }],
    [200, 401, 200, 401, 200, 403, 403],
  ],
  [
    'create a source',
    ['PUT', '/v1/sources/new', { ...FILE, claims: ACME }],
    [201, 401, 201, 401, 201, 403, 403],
  ],
  ['delete a source', ['DELETE', '/v1/sources/mine'], [204, 401, 204, 401, 204, 403, 403]],
  ['synchronise a source', ['POST', '/v1/sources/mine/sync'], [202, 401, 202, 401, 202, 404, 403]],
  ['read the synchronisation', ['GET', '/v1/sources/mine/sync'], [200, 401, 200, 401, 200, 404, 403]],
  ['list registries', ['GET', '/v1/registries'], [200, 401, 200, 401, 200, 200, undefined]],
  ['read a registry', ['GET', '/v1/registries/mine'], [200, 401, 200, 401, 200, 404, undefined]],
  ['list entries of a registry', ['GET', '/v1/registries/mine/entries'], [200, 401, 200, 401, 200, 404, 403]],
  [
    'replace a registry',
    ['PUT', '/v1/registries/mine', { sources: ['internal'], claims: ACME }],
    [200, 401, 200, 401, 200, 403, 403],
  ],
  ['delete a registry', ['DELETE', '/v1/registries/mine'], [204, 401, 204, 401, 204, 403, 403]],
  [
    'replace a source of the configuration',
    ['PUT', '/v1/sources/catalog', { ...FILE, claims: ACME }],
    [403, 401, 403, 401, 403, 403, 403],
  ],
  [
    'delete a source of the configuration',
    ['DELETE', '/v1/sources/catalog'],
    [403, 401, 403, 401, 403, 403, 403],
  ],
  [
    'replace a registry of the configuration',
    ['PUT', '/v1/registries/open', { sources: ['internal'] }],
    [403, 401, 403, 401, 403, 403, 403],
  ],
  [
    'delete a registry of the configuration',
    ['DELETE', '/v1/registries/open'],
    [403, 401, 403, 401, 403, 403, 403],
  ],
  ['me', ['GET', '/v1/me'], [401, 401, 200, 401, 200, 200, 200]],
  ['the OpenAPI document', ['GET', '/openapi.json'], [200, 200, 200, 200, 200, 200, 200]],
  ['how to sign in', ['GET', '/.well-known/oauth-protected-resource'], [404, 200, 200, 200, 200, 200, 200]],
  ['what skep login reads', ['GET', '/.well-known/skep-registry'], [404, 200, 200, 200, 200, 200, 200]],
  ['what is on the internal listener', ['GET', '/health'], [404, 401, 404, 401, 404, 404, 404]],
  ['metrics', ['GET', '/metrics'], [404, 401, 404, 401, 404, 404, 404]],
  ['explain about oneself', ['GET', '/v1/explain'], [200, 401, 200, 401, 200, 200, 200]],
  [
    'explain a publish',
    ['POST', '/v1/explain', { server: server('3'), claims: ACME }],
    [200, 401, 200, 401, 200, 200, 200],
  ],
  ['an unknown path', ['GET', '/v1/unknown'], [404, 401, 404, 401, 404, 404, 404]],
];

/** An entry, a source and a registry with the claims of acme. */
async function seed(mode: ModeName, admin: AdminUnderTest): Promise<void> {
  const as = mode === 'anonymous' ? 'nobody' : 'root';
  const made = [
    await admin.send('POST', '/v1/entries', { as, body: { server: server('1'), claims: ACME } }),
    await admin.send('PUT', '/v1/sources/mine', { as, body: { ...FILE, claims: ACME } }),
    await admin.send('PUT', '/v1/registries/mine', { as, body: { sources: ['internal'], claims: ACME } }),
  ];
  expect(made.map(({ statusCode }) => statusCode)).toEqual([201, 201, 201]);
}

async function prepared(mode: ModeName): Promise<AdminUnderTest> {
  const admin = await adminUnderTest({ mode });
  await seed(mode, admin);
  return admin;
}

describe.each(COLUMNS.map((column, index) => ({ column, index })))(
  '$column.0',
  { timeout: 60_000 },
  ({ column, index }) => {
    const [, mode, as] = column;
    let admin: AdminUnderTest | undefined;
    afterEach(() => admin?.close());

    test('answers every endpoint with the status of its row', async () => {
      for (const [title, [method, url, body], statuses] of ROWS) {
        if (statuses[index] === undefined) continue;
        admin ??= await prepared(mode);
        const { statusCode } = await admin.send(method, url, { as, ...(body === undefined ? {} : { body }) });
        expect([title, statusCode]).toEqual([title, statuses[index]]);
        if (method === 'GET' || statusCode >= 300) continue;
        // The row has changed what the next one would find.
        await admin.close();
        admin = undefined;
      }
    });
  },
);
