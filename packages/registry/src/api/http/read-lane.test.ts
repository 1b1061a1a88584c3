import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseClaims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { afterAll, describe, expect, it } from 'vitest';
import { CONTRACT_SWITCHES } from '../../access/switches.ts';
import { ANONYMOUS_AUTH, apiUnderTest, type ApiUnderTest, bearer, oauthWith } from '../api.fixture.ts';
import type { Exchange } from './observe-requests.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedBundle, storedServer } from '../snapshot.fixture.ts';

// `inject` goes to the router, a socket meets the lane first: both must answer the same, byte for byte.

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
const servers = {
  anonymous: await apiUnderTest({ snapshot, routes: READ_ROUTES, auth: ANONYMOUS_AUTH }),
  full: await apiUnderTest({
    snapshot,
    routes: READ_ROUTES,
    auth: full,
    keys: [key],
    listener: { compress: true },
  }),
};
const ports = new Map<ApiUnderTest, number>();
for (const server of Object.values(servers)) {
  await server.open.listen({ host: '127.0.0.1', port: 0 });
  ports.set(server, (server.open.server.address() as AddressInfo).port);
}
afterAll(() => Promise.all(Object.values(servers).map((server) => server.close())));

const acme = await bearer(key, { org: 'acme' });
const nobody = await bearer(key, { org: 'nobody' });

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Without what differs between any two answers, and what belongs to the connection. */
function comparable(headers: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const left = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !left.has(name)));
}

function overSocket(server: ApiUnderTest, { method = 'GET', url, headers }: Asked): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const options = {
      port: ports.get(server),
      host: '127.0.0.1',
      method,
      path: url,
      headers: { ...headers },
    };
    const request = http.request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: comparable(response.headers),
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    request.on('error', reject).end();
  });
}

interface Asked {
  readonly method?: 'GET' | 'HEAD';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function throughRouter(
  server: ApiUnderTest,
  { method = 'GET', url, headers = {} }: Asked,
): Promise<Seen> {
  const answer = await server.ask({ method, url, headers });
  return { status: answer.statusCode, headers: comparable(answer.headers), body: answer.body };
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

describe.each(['anonymous', 'full'] as const)('in %s mode a socket and the router agree on', (mode) => {
  const server = servers[mode];
  const callers: readonly Readonly<Record<string, string>>[] =
    mode === 'anonymous'
      ? [{}, { authorization: 'Bearer x' }]
      : [acme, nobody, {}, { authorization: 'Bearer x' }];

  it.each(URLS)('%s for every caller, the first and the next time', async (url) => {
    for (const caller of callers) {
      for (const more of [{}, { 'accept-encoding': 'gzip' }, { 'x-request-id': 'my-id' }]) {
        const asked = { url, headers: { ...caller, ...more } };
        const expected = await throughRouter(server, asked);
        expect(await overSocket(server, asked)).toEqual(expected);
        expect(await overSocket(server, asked)).toEqual(expected);
        const tag = expected.headers['etag'];
        if (typeof tag !== 'string') continue;
        const again = { url, headers: { ...asked.headers, 'if-none-match': tag } };
        expect(await overSocket(server, again)).toEqual(await throughRouter(server, again));
      }
      const head = { method: 'HEAD' as const, url, headers: caller };
      expect(await overSocket(server, head)).toEqual(await throughRouter(server, head));
    }
  });
});

it('tells observers of an answer what the router tells them', async () => {
  const waiting: ((exchange: Exchange) => void)[] = [];
  const observer = { end: (exchange: Exchange) => waiting.shift()?.(exchange) };
  const server = await apiUnderTest({ snapshot, routes: READ_ROUTES, listener: { observers: [observer] } });
  await server.open.listen({ host: '127.0.0.1', port: 0 });
  ports.set(server, (server.open.server.address() as AddressInfo).port);
  const toldOf = async (answer: (server: ApiUnderTest, asked: Asked) => Promise<Seen>, asked: Asked) => {
    const told = new Promise<Exchange>((resolve) => waiting.push(resolve));
    const { headers } = await answer(server, asked);
    const { row, pattern, status, responseBytes, durationMs } = await told;
    expect(durationMs).toBeGreaterThan(0);
    return { headers, told: { name: row?.name, pattern, status, responseBytes } };
  };
  const url = '/registry/all/v0.1/servers/acme%2Fopen/versions/latest';
  const first = await toldOf(throughRouter, { url });
  expect(first.told.responseBytes).toBeGreaterThan(100);
  const unchanged = { 'if-none-match': String(first.headers['etag']) };
  for (const asked of [{ url }, { url, method: 'HEAD' as const }, { url, headers: unchanged }]) {
    const expected = await toldOf(throughRouter, asked);
    expect(await toldOf(overSocket, asked)).toEqual(expected);
  }
  await server.close();
});

it('leaves a path with dot segments to the router, which refuses it', async () => {
  const asked = { url: '/registry/all/v0.1/../v0.1/servers' };
  expect((await overSocket(servers.anonymous, asked)).status).toBe(400);
});

it('answers reads with 200, so that the comparison above compares something', async () => {
  const asked = { url: '/registry/all/v0.1/servers', headers: acme };
  expect((await overSocket(servers.full, asked)).body).toContain('acme/open');
  expect((await overSocket(servers.full, asked)).body).not.toContain('acme/hidden');
  expect((await overSocket(servers.anonymous, asked)).body).toContain('acme/hidden');
});

it('takes a token that is known only in the one header, and by the one scheme, that the router takes', async () => {
  const url = '/registry/all/v0.1/servers';
  const good = String(acme['authorization']);
  const token = good.slice('Bearer '.length);
  const status = (...authorization: readonly string[]): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = authorization.flatMap((value) => ['Authorization', value]);
      const port = ports.get(servers.full);
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

it('never serves what a snapshot before held', async () => {
  const server = await apiUnderTest({ snapshot, routes: READ_ROUTES, auth: ANONYMOUS_AUTH });
  await server.open.listen({ host: '127.0.0.1', port: 0 });
  ports.set(server, (server.open.server.address() as AddressInfo).port);
  const asked = { url: '/registry/all/v0.1/servers/acme%2Fopen/versions/latest' };
  expect((await overSocket(server, asked)).status).toBe(200);
  server.serve(snapshotOf({ main: [storedServer('acme/other')] }));
  expect((await overSocket(server, asked)).status).toBe(404);
  await server.close();
});
