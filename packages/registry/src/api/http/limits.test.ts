import { silentLog } from '@skep/core/log/log.ts';
import { afterAll, describe, expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { apiUnderTest } from '../api.fixture.ts';
import { DEFAULT_LIMITS } from '../../shape/limits.ts';
import { withBodyLimits } from '../route/route.ts';
import { READ_ROUTES, ROUTES } from '../routes.ts';
import { snapshotOf, storedBundle, storedServer } from '../snapshot.fixture.ts';

const VERSIONS = ['1.0.0', '1.1.0', '1.2.0', '1.3.0', '1.4.0'];
const server = await apiUnderTest({
  snapshot: snapshotOf({
    files: [
      storedServer('io.acme/many', VERSIONS),
      ...['a', 'b', 'c', 'd'].map((name) => storedBundle('skill', ['io.acme', name])),
    ],
  }),
  routes: READ_ROUTES,
  limits: {
    pageSize: { default: 2, max: 3 },
    versionsPageSize: { default: 2, max: 4 },
    bundlePageSize: { default: 1, max: 2 },
  },
});
afterAll(() => server.close());

interface Page {
  readonly servers?: readonly { readonly server: { readonly version: string } }[];
  readonly metadata: { readonly count: number; readonly nextCursor?: string };
}

const page = async (url: string): Promise<Page> => (await server.get(url)).json();
const LIST = '/registry/all/v0.1/servers';
const ALL_VERSIONS = `${LIST}/io.acme%2Fmany/versions`;
const SKILLS = '/registry/all/v0.1/x/dev.skep/skills';

describe('configured page sizes', () => {
  test.each([
    [LIST, 2],
    [`${LIST}?limit=3`, 3],
    [`${LIST}?limit=1000`, 3],
    [ALL_VERSIONS, 2],
    [`${ALL_VERSIONS}?limit=1000`, 4],
    [SKILLS, 1],
    [`${SKILLS}?limit=2`, 2],
  ])('%s has %i items', async (url, count) => {
    expect((await page(url)).metadata.count).toBe(count);
  });

  test('refuse more skills than there may be, and say how many', async () => {
    const response = await server.get(`${SKILLS}?limit=3`);
    expect([response.statusCode, response.json()]).toEqual([
      400,
      { error: 'invalid limit parameter: must be between 1 and 2' },
    ]);
  });

  test('stand in the OpenAPI document', async () => {
    const document = (await server.get('/openapi.json')).json();
    const limitOf = (path: string): unknown =>
      document.paths[path]?.get?.parameters.find(({ name }) => name === 'limit')?.schema;
    expect(limitOf('/registry/{registry}/v0.1/servers')).toMatchObject({ default: 2 });
    expect(limitOf('/registry/{registry}/v0.1/servers/{serverName}/versions')).toMatchObject({ default: 2 });
    expect(limitOf('/registry/{registry}/v0.1/x/dev.skep/skills')).toMatchObject({ default: 1, maximum: 2 });
  });
});

describe('the versions of a server', () => {
  test('come in pages that together hold each once', async () => {
    const seen: string[] = [];
    let cursor: string | undefined = '';
    while (cursor !== undefined) {
      const next: Page = await page(`${ALL_VERSIONS}?limit=2&cursor=${cursor}`);
      seen.push(...(next.servers ?? []).map((item) => item.server.version));
      cursor = next.metadata.nextCursor;
    }
    expect(seen).toEqual(VERSIONS);
  });

  test.each([
    ['limit=0', 'Invalid limit parameter: must be greater than zero'],
    ['limit=x', 'Invalid limit parameter: must be an integer'],
    ['cursor=%25', 'invalid cursor'],
  ])('with %s are a bad request', async (query, error) => {
    const response = await server.get(`${ALL_VERSIONS}?${query}`);
    expect([response.statusCode, response.json()]).toEqual([400, { error }]);
  });

  test('of an unknown server are an empty page, whatever is asked for', async () => {
    expect(await page(`${LIST}/io.acme%2Fnone/versions?limit=1`)).toEqual({
      servers: [],
      metadata: { count: 0 },
    });
  });
});

describe('configured body limits', () => {
  const bodies = { ...DEFAULT_LIMITS, maxBodySize: 2000, maxInlineDataSize: 3000 };

  test('bound each request by what it may bring, and are documented', async () => {
    const admin = await apiUnderTest({
      snapshot: snapshotOf({}),
      routes: withBodyLimits(ROUTES, bodies),
      listener: { log: silentLog },
    });
    const put = async (url: string, bytes: number) => {
      const payload = JSON.stringify({ x: 'y'.repeat(bytes) });
      const headers = { 'content-type': 'application/json' };
      return (await admin.ask({ method: 'PUT', url, headers, payload })).statusCode;
    };
    expect(await put('/v1/registries/a', 1900)).not.toBe(413);
    expect(await put('/v1/registries/a', 2100)).toBe(413);
    expect(await put('/v1/sources/a', 2100)).not.toBe(413);
    expect(await put('/v1/sources/a', 3100)).toBe(413);
    const document = (await admin.get('/openapi.json')).json();
    expect(document.paths['/v1/registries/{name}']?.put?.responses[413]?.description).toContain('2000 bytes');
    expect(document.paths['/v1/sources/{name}']?.put?.responses[413]?.description).toContain('3000 bytes');
    await admin.close();
  });

  test('are the documented ones by default', () => {
    expect(DEFAULT_LIMITS).toMatchObject({ maxBodySize: 1_048_576, maxInlineDataSize: 10_485_760 });
  });
});

describe('a configured time for requests', () => {
  test.each([
    [undefined, 10_000],
    [2000, 2000],
    [60_000, 60_000],
  ])('of %s ends handlers after %i milliseconds', async (requestMs, expected) => {
    const clock = manualClock();
    const entered = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string>();
    const slow = await apiUnderTest({
      snapshot: snapshotOf({}),
      listener: { clock, ...(requestMs === undefined ? {} : { requestMs }) },
      metrics: () => {
        entered.resolve();
        return answer.promise;
      },
    });
    const asked = slow.ask({ method: 'GET', url: '/metrics' }, 'internal');
    await entered.promise;
    expect(clock.nextIn).toBe(expected);
    clock.pass(expected);
    expect((await asked).statusCode).toBe(504);
    answer.resolve('');
    await slow.close();
  });

  test.each([
    [2000, { requestTimeout: 2000, headersTimeout: 2000, timeout: 7000 }],
    [10_000, { requestTimeout: 10_000, headersTimeout: 10_000, timeout: 15_000 }],
    [60_000, { requestTimeout: 60_000, headersTimeout: 10_000, timeout: 65_000 }],
  ])(
    'of %i bounds how long one may take to arrive, and keeps its connection as long',
    async (requestMs, expected) => {
      const one = await apiUnderTest({ snapshot: snapshotOf({}), listener: { requestMs } });
      expect(one.open.server).toMatchObject(expected);
      await one.close();
    },
  );
});
