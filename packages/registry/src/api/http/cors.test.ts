import { signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { afterAll, describe, expect, test } from 'vitest';
import { apiUnderTest, bearer, oauthWith, type TestServer } from '../api.fixture.ts';
import type { CorsSettings } from '../../config/cors.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

const APP = 'https://app.example';
const LIST = '/registry/all/v0.1/servers';
const key = await signingKey('k1');
const token = await bearer(key, { org: 'acme' });
const started: TestServer[] = [];

/** A listener with sign-in at a port of its own, because only the wire shows what the short way answers. */
async function served(cors?: CorsSettings): Promise<(url: string, init?: RequestInit) => Promise<Response>> {
  const api = await apiUnderTest({
    snapshot: snapshotOf({ files: [storedServer('io.acme/weather')] }),
    auth: oauthWith({ kind: 'auth-only' }),
    keys: [key],
    routes: READ_ROUTES,
    listener: { compress: true, ...(cors === undefined ? {} : { cors }) },
  });
  started.push(api.open);
  const base = await api.open.listen();
  return (url, init) => fetch(base + url, init);
}

afterAll(() => Promise.all(started.map((server) => server.close())));

const [closed, some, all] = [
  await served(),
  await served({ allowedOrigins: [APP, 'http://localhost:5173'], maxAge: 600 }),
  await served({ allowedOrigins: '*', maxAge: 600 }),
];

const corsHeaders = ({ headers }: Response): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));

const preflight = (origin: string, more: Record<string, string> = {}): RequestInit => ({
  method: 'OPTIONS',
  headers: { origin, 'access-control-request-method': 'GET', ...more },
});

describe('without allowed origins', () => {
  test('no answer and no question of a browser gets a header of the protocol', async () => {
    const answers = [
      await closed(LIST, { headers: { ...token, origin: APP } }),
      await closed(LIST, preflight(APP)),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401]);
    for (const answer of answers) {
      expect(corsHeaders(answer)).toEqual({});
      expect(answer.headers.get('vary')).not.toMatch(/Origin/);
    }
  });
});

describe('an allowed origin', () => {
  test.each([LIST, '/v1/me', '/v1/sources/x', '/nothing'])(
    'may ask before it calls %s, and needs no token for that',
    async (url) => {
      const answer = await some(url, preflight(APP, { 'access-control-request-headers': 'authorization' }));
      expect(answer.status).toBe(204);
      expect(await answer.text()).toBe('');
      expect(corsHeaders(answer)).toEqual({
        'access-control-allow-origin': APP,
        'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
        'access-control-allow-headers':
          'Authorization, Content-Type, If-None-Match, X-Request-Id, Traceparent, Tracestate',
        'access-control-max-age': '600',
      });
      expect(answer.headers.get('vary')).toContain('Origin');
    },
  );

  test('may read answers, refusals included, and never with credentials of the browser', async () => {
    const headers = { ...token, origin: 'http://localhost:5173' };
    const answers = [
      await some(LIST, { headers }),
      // Known now, so without the origin the short way would take it.
      await some(LIST, { headers }),
      await some(LIST, { headers: { ...headers, authorization: 'Bearer x' } }),
      await some('/registry/none/v0.1/servers', { headers }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 404]);
    for (const answer of answers) {
      expect(corsHeaders(answer)).toEqual({
        'access-control-allow-origin': 'http://localhost:5173',
        'access-control-expose-headers': 'ETag, Location, Retry-After, WWW-Authenticate, X-Request-Id',
      });
      expect(answer.headers.get('vary')).toMatch(/^Authorization, Origin/);
    }
  });

  test('is asked for a token when OPTIONS is no question of a browser', async () => {
    const answer = await some(LIST, { method: 'OPTIONS', headers: { origin: APP } });
    expect(answer.status).toBe(401);
  });
});

describe('any other origin', () => {
  test.each(['https://evil.example', 'https://app.example.evil.example', 'http://app.example', 'null'])(
    'gets no permission: %s',
    async (origin) => {
      const answer = await some(LIST, { headers: { ...token, origin } });
      expect(answer.status).toBe(200);
      expect(corsHeaders(answer)).toEqual({});
      expect(answer.headers.get('vary')).toContain('Origin');
      const asked = await some(LIST, preflight(origin));
      expect([asked.status, corsHeaders(asked)]).toEqual([401, {}]);
    },
  );

  test('or none gets answers that caches keep apart, by the short way too', async () => {
    for (const encoding of ['identity', 'gzip']) {
      const headers = { ...token, 'accept-encoding': encoding };
      await some(LIST, { headers });
      const answer = await some(LIST, { headers });
      expect(corsHeaders(answer)).toEqual({});
      expect(answer.headers.get('vary')).toBe('Authorization, Origin, Accept-Encoding');
    }
  });
});

test('* allows every origin, without telling them apart and without credentials', async () => {
  const answer = await all(LIST, { headers: { ...token, origin: 'https://evil.example' } });
  expect(corsHeaders(answer)).toMatchObject({ 'access-control-allow-origin': '*' });
  expect(corsHeaders(answer)).not.toHaveProperty('access-control-allow-credentials');
  expect(answer.headers.get('vary')).not.toContain('Origin');
  expect((await all(LIST, preflight('https://evil.example'))).status).toBe(204);
});
