import { signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { parseClaims } from '@skep/auth/claims/claims.ts';
import { afterAll, describe, expect, test } from 'vitest';
import { CONTRACT_SWITCHES } from '../../access/authority.ts';
import { apiUnderTest, bearer, oauthWith, type ApiUnderTest } from '../api.fixture.ts';
import { documentedPaths, openApiDocument, repliesOf } from './openapi.ts';
import { READ_ROUTES, ROUTES } from '../routes.ts';
import { snapshotOf, storedBundle, storedServer } from '../snapshot.fixture.ts';

const document = openApiDocument({ routes: ROUTES, version: '1' });
const publicRoutes = ROUTES.filter((route) => route.listener === 'public');

describe('the OpenAPI document', () => {
  test('lists every public path with its parameters, body and statuses', () => {
    expect(document).toMatchObject({ openapi: '3.1.1' });
    for (const route of publicRoutes) {
      for (const path of documentedPaths(route)) {
        const operation: unknown = Reflect.get(
          Reflect.get(document, 'paths')[path],
          route.method.toLowerCase(),
        );
        expect(operation).toMatchObject({
          responses: Object.fromEntries(Object.keys(repliesOf(route)).map((status) => [status, {}])),
          parameters: (path.match(/\{\w+\}/g) ?? [])
            .map((name) => ({ in: 'path', name: name.slice(1, -1) }))
            .concat(Object.keys(route.query).map((name) => ({ in: 'query', name }))),
          ...(route.access === 'public' ? {} : { security: [{ bearer: [] }, {}] }),
          ...(route.body === undefined ? {} : { requestBody: {} }),
        });
      }
    }
  });

  test('lists nothing else', () => {
    const paths = Object.keys(Reflect.get(document, 'paths')).toSorted();
    expect(paths).toEqual([...new Set(publicRoutes.flatMap(documentedPaths))].toSorted());
  });

  test('refers only to schemas that it contains', () => {
    const text = JSON.stringify(document);
    for (const [, name] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
      expect(document).toHaveProperty(['components', 'schemas', name ?? '']);
    }
  });
});

describe('reading endpoints', async () => {
  const key = await signingKey('k1');
  const snapshot = snapshotOf(
    {
      files: [
        storedServer('io.acme/weather', ['1.0.0'], { claims: '{"org":["acme"]}' }),
        storedBundle('skill', ['io.acme', 'triage'], ['1.0.0'], { claims: '{"org":["acme"]}' }),
        storedBundle('plugin', ['io.acme', 'linter'], ['1.0.0'], { claims: '{"org":["acme"]}' }),
      ],
    },
    [
      { name: 'all', sources: ['files'] },
      { name: 'gated', sources: ['files'], claims: '{"org":["nobody"]}' },
    ],
  );
  const rules = { manageEntries: [parseClaims({ role: 'writer' })] };
  const auth = oauthWith({ kind: 'full', rules, switches: CONTRACT_SWITCHES });
  const full = await apiUnderTest({
    snapshot,
    auth,
    keys: [key],
    routes: READ_ROUTES,
    listener: { requestRate: () => ({ perSecond: 0.001, burst: 200 }) },
  });
  const outage = await apiUnderTest({ snapshot, auth, routes: READ_ROUTES });
  outage.issuer.broken.set('/.well-known/openid-configuration', 500).set('/jwks', 500);
  const anonymous = await apiUnderTest({ snapshot, routes: READ_ROUTES });
  const apis: readonly ApiUnderTest[] = [full, outage, anonymous];
  afterAll(() => Promise.all(apis.map((api) => api.close())));

  test('answer exactly the documented statuses', async () => {
    const alice = await bearer(key, { org: 'acme' });
    const paths = publicRoutes
      .filter((route) => READ_ROUTES.includes(route))
      .map((route) => ({ route, path: route.paths[0] }));
    for (const { route, path } of paths) {
      for (const url of urlsFor(path)) {
        const answer = await full.get(url, alice);
        const etag = String(answer.headers['etag']);
        await full.get(url, { ...alice, 'if-none-match': etag });
        await full.get(url);
        await anonymous.get(url);
        if (route.access !== 'public') await outage.get(url, alice);
      }
    }
    const restless = await bearer(key, { org: 'acme', sub: 'restless' });
    for (let index = 0; index < 201; index += 1) await full.get('/v1/me', restless);
    for (const { route, path } of paths) {
      if (route.access === 'public') continue;
      const answer = await full.get(urlsFor(path)[0] ?? '', restless);
      expect([answer.statusCode, Number(answer.headers['retry-after']) > 0]).toEqual([429, true]);
    }
    for (const api of [full, anonymous]) {
      for (const url of ['/health', '/version', '/readiness']) await api.ask({ url }, 'internal');
    }
    anonymous.setReady(false);
    await anonymous.ask({ url: '/readiness' }, 'internal');
    const seen = new Set(apis.flatMap((api) => [...api.seen]));
    // /metrics needs telemetry; its statuses are held by the tests of it.
    const documented = READ_ROUTES.filter(({ name }) => name !== 'metrics').flatMap((route) =>
      Object.keys(repliesOf(route)).map((status) => `${route.name} ${status}`),
    );
    expect([...seen].toSorted()).toEqual(documented.toSorted());
  });
});

/** Requests for one path that lead to each of its answers: found, unknown, gated, bad. */
function urlsFor(path: string): string[] {
  const filled = (values: Readonly<Record<string, string>>): string =>
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? name);
  const isPlugin = path.includes('/plugins');
  const good = {
    registry: 'all',
    serverName: 'io.acme%2Fweather',
    version: 'latest',
    namespace: 'io.acme',
    name: isPlugin ? 'linter' : 'triage',
  };
  return [
    filled(good),
    filled({ ...good, registry: 'gated' }),
    filled({ ...good, registry: 'none' }),
    filled({ ...good, registry: '%20' }),
    filled({ ...good, serverName: 'none', name: 'none' }),
    filled({ ...good, serverName: '-bad-', name: 'bad%20name' }),
    `${filled(good)}?limit=0`,
  ];
}
