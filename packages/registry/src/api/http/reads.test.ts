import http from 'node:http';
import { parseClaims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { afterAll, describe, expect, test } from 'vitest';
import { CONTRACT_SWITCHES } from '../../access/authority.ts';
import {
  ANONYMOUS_AUTH,
  apiUnderTest,
  bearer,
  oauthWith,
  type TestRequest,
  type TestResponse,
} from '../api.fixture.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedBundle, storedServer } from '../snapshot.fixture.ts';
import type { Exchange } from './observe-requests.ts';

// A read is answered by its handler the first time and from memory the next time: nobody may tell the two apart.

const claims = (value: Record<string, unknown>): string => canonicalClaims(parseClaims(value));
const snapshot = snapshotOf({
  main: [
    storedServer('acme/open', ['1.0.0', '2.0.0'], { claims: claims({ org: 'acme' }) }),
    storedServer('acme/hidden', ['1.0.0'], { claims: claims({ org: 'other' }) }),
    storedServer('bare', ['1.0.0'], { claims: claims({ org: 'acme' }) }),
    storedBundle('skill', ['acme', 'triage'], ['0.1.0'], { claims: claims({ org: 'acme' }) }),
  ],
});
const key = await signingKey('k1');
const full = oauthWith({ kind: 'full', rules: {}, switches: CONTRACT_SWITCHES });
const open = async (mode: 'anonymous' | 'full') =>
  apiUnderTest({
    snapshot,
    routes: READ_ROUTES,
    ...(mode === 'full' ? { auth: full, keys: [key] } : { auth: ANONYMOUS_AUTH }),
    listener: { compress: true },
  });
const servers = { anonymous: await open('anonymous'), full: await open('full') };
afterAll(() => Promise.all(Object.values(servers).map((server) => server.close())));

const acme = await bearer(key, { org: 'acme' });
const nobody = await bearer(key, { org: 'nobody' });

/** Without what differs between any two answers, and what belongs to the connection. */
function comparable({ statusCode, headers, rawPayload }: TestResponse) {
  const { date: _date, connection: _connection, 'keep-alive': _alive, ...rest } = headers;
  return { statusCode, headers: rest, body: rawPayload.toString('base64') };
}

const URLS = [
  '/registry/all/v0.1/servers',
  '/all/v0.1/servers?limit=1',
  '/all/v0.1/servers?limit=1&limit=2',
  '/all/v0.1/servers?limit=x',
  '/all/v0.1/servers?search=a%2Fb&version=latest',
  '/registry/all/v0.1/servers/acme%2Fopen/versions',
  '/registry/all/v0.1/servers/acme/open/versions/latest',
  '/registry/all/v0.1/servers/acme%2Fopen/versions/1.0.0',
  '/registry/all/v0.1/servers/acme%2Fhidden/versions/latest',
  '/registry/all/v0.1/servers/bare/versions/latest',
  '/registry/all/v0.1/servers/acme%2Fnone/versions/latest',
  '/registry/all/v0.1/servers/%zz/versions/latest',
  '/registry/all/v0.1/x/dev.skep/skills',
  '/registry/all/v0.1/x/dev.toolhive/skills/acme/triage',
  '/registry/none/v0.1/servers',
  '/registry/v0.1/servers',
  '/v1/v0.1/servers',
];

describe.each(['anonymous', 'full'] as const)('in %s mode', (mode) => {
  const callers: readonly Readonly<Record<string, string>>[] =
    mode === 'anonymous'
      ? [{}, { authorization: 'Bearer x' }]
      : [acme, nobody, {}, { authorization: 'Bearer x' }];

  test.each(URLS)('%s is the same for every caller, the first and the next time', async (url) => {
    for (const caller of callers) {
      for (const more of [{}, { 'accept-encoding': 'gzip' }, { 'x-request-id': 'my-id' }]) {
        const headers = { ...caller, ...more };
        const fresh = await open(mode);
        const first = await fresh.get(url, headers);
        await fresh.close();
        const tag = first.headers.etag;
        const [, next, head] = [
          await servers[mode].get(url, headers),
          await servers[mode].get(url, headers),
          await servers[mode].ask({ method: 'HEAD', url, headers }),
        ];
        expect(comparable(next)).toEqual(comparable(first));
        expect(comparable(head)).toEqual({ ...comparable(first), body: '' });
        if (tag === undefined) continue;
        const unchanged = await servers[mode].get(url, { ...headers, 'if-none-match': tag });
        expect([unchanged.statusCode, unchanged.headers.etag, unchanged.body]).toEqual([304, tag, '']);
      }
    }
  });
});

test('observers are told the same of the first read and of the next', async () => {
  const waiting: ((exchange: Exchange) => void)[] = [];
  const observer = { end: (exchange: Exchange) => waiting.shift()?.(exchange) };
  const server = await apiUnderTest({ snapshot, routes: READ_ROUTES, listener: { observers: [observer] } });
  const toldOf = async (asked: TestRequest) => {
    const told = new Promise<Exchange>((resolve) => waiting.push(resolve));
    const { headers } = await server.ask(asked);
    const { request, status, durationMs } = await told;
    const { row, pattern, responseBytes } = request;
    expect(durationMs).toBeGreaterThan(0);
    return { headers, told: { name: row?.name, pattern, status, responseBytes } };
  };
  const url = '/registry/all/v0.1/servers/acme%2Fopen/versions/latest';
  const first = await toldOf({ url });
  expect(first.told.responseBytes).toBeGreaterThan(100);
  expect((await toldOf({ url })).told).toEqual(first.told);
  expect((await toldOf({ url, method: 'HEAD' })).told).toEqual(first.told);
  const unchanged = { 'if-none-match': String(first.headers['etag']) };
  expect((await toldOf({ url, headers: unchanged })).told).toEqual({
    ...first.told,
    status: 304,
    responseBytes: 0,
  });
  await server.close();
});

test('a read shows what its caller may see, so that the comparison above compares something', async () => {
  const url = '/registry/all/v0.1/servers';
  expect((await servers.full.get(url, acme)).body).toContain('acme/open');
  expect((await servers.full.get(url, acme)).body).not.toContain('acme/hidden');
  expect((await servers.anonymous.get(url)).body).toContain('acme/hidden');
});

test('a token that is known counts only in the one header, and by the one scheme', async () => {
  const url = '/registry/all/v0.1/servers';
  const good = String(acme['authorization']);
  const token = good.slice('Bearer '.length);
  const port = new URL(await servers.full.open.listen()).port;
  const status = (...authorization: readonly string[]): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = authorization.flatMap((value) => ['Authorization', value]);
      http
        .request({ port, host: '127.0.0.1', path: url, headers: ['Host', 'x', ...headers] })
        .on('response', (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
  expect([await status(good), await status(`bearer ${token}`)]).toEqual([200, 200]);
  for (const refused of [
    [`Foobar ${token}`],
    [`Bearer\t${token}`],
    [good, good],
    [good, 'Bearer x'],
    [token],
  ]) {
    expect([refused.length, await status(...refused)]).toEqual([refused.length, 401]);
  }
});

test('what a snapshot before held is never served', async () => {
  const server = await open('anonymous');
  const url = '/registry/all/v0.1/servers/acme%2Fopen/versions/latest';
  expect((await server.get(url)).statusCode).toBe(200);
  server.serve(snapshotOf({ main: [storedServer('acme/other')] }));
  expect((await server.get(url)).statusCode).toBe(404);
  await server.close();
});
