import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { buildInfo } from '../../config/build-info.ts';
import { apiUnderTest } from '../api.fixture.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

const snapshot = snapshotOf({
  files: [
    storedServer('io.acme/weather', ['1.0.0', '1.10.0', '1.9.0', '2.0.0'], { title: 'Weather' }),
    storedServer('io.acme/news', ['1.0.0'], { title: '100% News_paper' }),
    storedServer('bare', ['v1']),
  ],
});
const api = await apiUnderTest({ snapshot, routes: READ_ROUTES });
const { open } = api;
const get: typeof api.get = (url, headers) => api.get(url, headers);
const internal = (url: string) => api.ask({ method: 'GET', url }, 'internal');
afterAll(() => api.close());

const listed = (body: string): string[] => {
  const page: { servers: { server: { name: string; version: string } }[] } = JSON.parse(body);
  return page.servers.map((item) => `${item.server.name}@${item.server.version}`);
};

const ALL = [
  'bare@v1',
  'io.acme/news@1.0.0',
  ...['1.0.0', '1.10.0', '1.9.0', '2.0.0'].map((v) => `io.acme/weather@${v}`),
];

describe('the list of servers', () => {
  test.each<[query: string, expected: readonly string[]]>([
    ['', ALL],
    ['?limit=2', ALL.slice(0, 2)],
    ['?limit=5000', ALL],
    ['?limit=&search=&cursor=&version=&updated_since=', ALL],
    ['?version=latest', ['bare@v1', 'io.acme/news@1.0.0', 'io.acme/weather@2.0.0']],
    ['?version=1.0.0', ['io.acme/news@1.0.0', 'io.acme/weather@1.0.0']],
    ['?version=1.0', []],
    ['?search=WEATHER&version=latest', ['io.acme/weather@2.0.0']],
    ['?search=0%25', ['io.acme/news@1.0.0']],
    ['?search=%25', ['io.acme/news@1.0.0']],
    ['?search=s_p', ['io.acme/news@1.0.0']],
    ['?search=_', ['io.acme/news@1.0.0']],
    ['?search=*', []],
    ['?updated_since=2026-01-01T00:00:00Z', ['io.acme/weather@2.0.0']],
    ['?updated_since=2026-01-01T01:59:59%2B02:00', ALL],
    ['?updated_since=2026-03-01T00:00:00.000Z', []],
    [`?cursor=${Buffer.from('io.acme/weather,1.9.0').toString('base64url')}`, ['io.acme/weather@2.0.0']],
    [
      `?cursor=${encodeURIComponent(Buffer.from('io.acme/weather,1.9.0').toString('base64'))}`,
      ['io.acme/weather@2.0.0'],
    ],
    ['?unknown=1', ALL],
  ])('answers %s', async (query, expected) => {
    for (const base of ['/registry/all', '/all']) {
      const response = await get(`${base}/v0.1/servers${query}`);
      expect(response.statusCode).toBe(200);
      expect(listed(response.body)).toEqual(expected);
      expect(JSON.parse(response.body).metadata.count).toBe(expected.length);
    }
  });

  test.each([
    ['?limit=ten', 'Invalid limit parameter: must be an integer'],
    ['?limit=1.5', 'Invalid limit parameter: must be an integer'],
    ['?limit=0', 'Invalid limit parameter: must be greater than zero'],
    ['?limit=-3', 'Invalid limit parameter: must be greater than zero'],
    ['?limit=1&limit=2', 'Invalid limit parameter: must be given once'],
    [`?search=${'a'.repeat(201)}`, 'Invalid search parameter: at most 200 characters are allowed'],
    ['?cursor=*', 'invalid cursor'],
    ['?cursor=AAAA', 'invalid cursor'],
    [
      '?updated_since=2026-01-01',
      'Invalid updated_since parameter: must be RFC3339 format, for example 2026-01-02T03:04:05Z',
    ],
    [
      '?updated_since=now',
      'Invalid updated_since parameter: must be RFC3339 format, for example 2026-01-02T03:04:05Z',
    ],
  ])('refuses %s', async (query, error) => {
    const response = await get(`/all/v0.1/servers${query}`);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual({ error });
  });

  test('refuses a bad parameter before it says that there is no such registry', async () => {
    expect((await get('/none/v0.1/servers?limit=x')).statusCode).toBe(400);
    const response = await get('/none/v0.1/servers');
    expect(response.statusCode).toBe(404);
    expect(response.json()).toEqual({ error: 'registry not found' });
  });

  test('gives the next cursor exactly while more is to come', async () => {
    expect((await get('/all/v0.1/servers?limit=6')).json().metadata).toEqual({ count: 6 });
    expect((await get('/all/v0.1/servers?limit=5')).json().metadata.nextCursor).toEqual(expect.any(String));
  });

  test('never answers 5xx, whatever the query', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('cursor', 'limit', 'search', 'version', 'updated_since', 'x'),
        fc.oneof(
          anyText().map((text) => encodeURIComponent(text.toWellFormed())),
          fc.stringMatching(/^[!-~]*$/).map((text) => text.replaceAll('#', '')),
        ),
        async (name, value) => {
          const response = await open.inject(`/all/v0.1/servers?${name}=${value}`);
          expect([200, 400]).toContain(response.statusCode);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('one server', () => {
  test.each([
    '/registry/all/v0.1/servers/io.acme%2Fweather/versions',
    '/all/v0.1/servers/io.acme%2Fweather/versions',
    '/all/v0.1/servers/io.acme%2fweather/versions',
    '/registry/all/v0.1/servers/io.acme/weather/versions',
    '/all/v0.1/servers/io.acme/weather/versions',
  ])('lists its versions at %s', async (url) => {
    const response = await get(url);
    expect(response.statusCode).toBe(200);
    expect(listed(response.body)).toEqual(ALL.slice(2));
  });

  test.each([
    ['/registry/all/v0.1/servers/io.acme%2Fweather/versions/latest', '2.0.0'],
    ['/all/v0.1/servers/io.acme/weather/versions/latest', '2.0.0'],
    ['/all/v0.1/servers/io.acme/weather/versions/1.10.0', '1.10.0'],
    ['/all/v0.1/servers/bare/versions/v1', 'v1'],
  ])('is found at %s', async (url, version) => {
    const response = await get(url);
    expect(response.statusCode).toBe(200);
    const item = response.json();
    expect(item.server.version).toBe(version);
    expect(item._meta['io.modelcontextprotocol.registry/official']?.isLatest).toBe(version !== '1.10.0');
  });

  test.each([
    ['/all/v0.1/servers/io.acme%2Fnone/versions/latest', 404, 'not found'],
    ['/all/v0.1/servers/io.acme%2Fweather/versions/9.9.9', 404, 'not found'],
    ['/none/v0.1/servers/io.acme%2Fweather/versions/1.0.0', 404, 'registry not found'],
    ['/none/v0.1/servers/io.acme%2Fweather/versions', 404, 'registry not found'],
    ['/none/v0.1/servers/-bad-/versions', 400, 'invalid server name format: '],
    ['/none/v0.1/servers/a%20b/versions', 400, 'serverName cannot contain whitespace'],
    ['/all/v0.1/servers/%20/versions', 400, 'serverName cannot be empty'],
    ['/all/v0.1/servers/a%2Fb%2Fc/versions', 400, 'invalid server name format: '],
    ['/all/v0.1/servers/a%252Fb/versions', 400, 'invalid server name format: '],
    ['/all/v0.1/servers/a%2Fb/versions/1%092', 400, 'version cannot contain whitespace'],
    [`/all/v0.1/servers/${'a'.repeat(201)}/versions/latest`, 400, 'invalid server name format: '],
  ])('refuses %s with %i', async (url, status, error) => {
    const response = await get(url);
    expect(response.statusCode).toBe(status);
    expect(response.json().error).toMatch(new RegExp(`^${error}`));
  });

  test('has an empty list of versions when it does not exist', async () => {
    expect((await get('/all/v0.1/servers/io.acme%2Fnone/versions')).body).toBe(
      '{"servers":[],"metadata":{"count":0}}',
    );
  });

  test('decodes a path exactly once', async () => {
    const response = await get('/all/v0.1/servers/%2562are/versions');
    expect(response.statusCode).toBe(400);
    expect((await get('/all/v0.1/servers/%62are/versions')).statusCode).toBe(200);
  });
});

describe('conditional requests', () => {
  test.each([
    '/all/v0.1/servers?limit=2',
    '/all/v0.1/servers/bare/versions',
    '/all/v0.1/servers/bare/versions/latest',
  ])('answers 304 without a body while %s is unchanged', async (url) => {
    const first = await get(url);
    const etag = String(first.headers['etag']);
    expect(etag).toMatch(/^"[\w-]+"$/);
    for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const second = await get(url, { 'if-none-match': header });
      expect([second.statusCode, second.body, second.headers['etag']]).toEqual([304, '', etag]);
    }
    expect((await get(url, { 'if-none-match': '"other"' })).statusCode).toBe(200);
  });

  test('does not let a condition hide that a request is bad', async () => {
    expect((await get('/all/v0.1/servers?limit=0', { 'if-none-match': '*' })).statusCode).toBe(400);
    expect((await get('/all/v0.1/servers/bare/versions/9', { 'if-none-match': '*' })).statusCode).toBe(404);
  });
});

describe('the public listener', () => {
  test('sets the security headers on answers and errors', async () => {
    for (const url of ['/all/v0.1/servers', '/nothing', '/all/v0.1/servers?limit=0', '/%zz']) {
      const { headers } = await get(url);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        vary: 'Authorization',
        'content-type': 'application/json; charset=utf-8',
        'x-request-id': 'random-id',
      });
    }
  });

  test('keeps a sane request id of the caller and replaces any other', async () => {
    expect((await get('/', { 'x-request-id': 'abc-1.2' })).headers['x-request-id']).toBe('abc-1.2');
    expect((await get('/', { 'x-request-id': 'a b"' })).headers['x-request-id']).toBe('random-id');
  });

  test.each([
    '/',
    '/health',
    '/readiness',
    '/version',
    '/metrics',
    '/v1/v0.1/servers',
    '/registry/v0.1/servers',
    '/health/v0.1/servers/a/versions',
    '/.well-known/oauth-protected-resource',
    '/.well-known/skep-registry',
    '/all/v0.2/servers',
    '/all/v0.1/servers/',
  ])('knows no endpoint %s', async (url) => {
    const response = await get(url);
    expect(response.statusCode).toBe(404);
    expect(response.json()).toEqual({ error: 'no such endpoint' });
  });

  test.each([
    '/%zz',
    '/all/v0.1/servers/%/versions',
    '/all/v0.1/servers/%E0%A4%A/versions/1',
    '/all/v0.1/servers/%ff/versions',
  ])('refuses the broken escape in %s', async (url) => {
    const response = await get(url);
    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatch(/^invalid URL encoding in path segment "/);
  });

  test('refuses a path segment that is longer than any parameter', async () => {
    const response = await get(`/${'x'.repeat(3000)}/v0.1/servers`);
    expect([response.statusCode, response.json()]).toEqual([400, { error: 'a path segment is too long' }]);
  });

  test('answers HEAD like GET without the body', async () => {
    const full = await get('/all/v0.1/servers');
    const head = await open.inject({ method: 'HEAD', url: '/all/v0.1/servers' });
    expect(head.statusCode).toBe(200);
    expect(head.body).toBe('');
    expect(head.headers['etag']).toBe(full.headers['etag']);
    expect(head.headers['content-length']).toBe(full.headers['content-length']);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const)(
    'answers 405 to %s on a path it knows',
    async (method) => {
      const response = await open.inject({
        method,
        url: '/all/v0.1/servers',
        headers: { 'content-type': 'application/json\t;x' },
        payload: '{',
      });
      expect([response.statusCode, response.headers['allow']]).toEqual([405, 'GET, HEAD']);
      expect(response.json()).toEqual({ error: 'method not allowed' });
    },
  );
});

describe('the internal listener', () => {
  test('tells health, version and readiness', async () => {
    expect((await internal('/health')).json()).toEqual({ status: 'healthy' });
    expect((await internal('/version')).json()).toEqual(
      buildInfo({ nodeVersion: 'v24.0.0', platform: 'linux', arch: 'x64' }),
    );
    expect((await internal('/readiness')).json()).toEqual({ status: 'ready' });
    api.setReady(false);
    const response = await internal('/readiness');
    api.setReady(true);
    expect([response.statusCode, response.json()]).toEqual([503, { error: 'service not ready' }]);
  });

  test('has no metrics where none are kept', async () => {
    expect((await internal('/metrics')).statusCode).toBe(404);
  });

  test('knows no endpoint of the public one', async () => {
    expect((await internal('/all/v0.1/servers')).statusCode).toBe(404);
  });
});
