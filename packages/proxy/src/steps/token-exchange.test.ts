import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  AUDIENCE,
  ISSUER,
  fakeIssuer,
  signed,
  signingKey,
  type SigningKey,
} from '@skep/auth/token/tokens.fixture.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { openStream, postJson } from '../doubles/http-client.ts';
import { askModern, modernRequest } from '../doubles/modern.ts';
import { initializeRequest, runningProxy, type RunningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer, type ScriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { scriptedServer, type Script } from '../doubles/scripted-server.ts';
import type { PartSettings } from './parts.ts';
import { openTokenExchange, type TokenExchangeSettings } from './token-exchange.ts';

let key: SigningKey;
let origin: string;
/** What the token endpoint was asked, and what it answers. */
const asked: { subject: string; headers: IncomingHttpHeaders }[] = [];
let status = 200;

/** An identity provider whose new tokens name the subject of the old ones. */
const provider = createServer((req, res) => {
  if (req.url === '/jwks') {
    void fakeIssuer([key])
      .fetch(`${ISSUER}/jwks`)
      .then(async (answer) => res.end(await answer.text()));
    return;
  }
  let body = '';
  req.on('data', (chunk) => (body += String(chunk)));
  req.on('end', () => {
    const subject = new URLSearchParams(body).get('subject_token') ?? '';
    asked.push({ subject, headers: req.headers });
    const { sub } = JSON.parse(Buffer.from(subject.split('.')[1] ?? '', 'base64url').toString());
    const said = {
      access_token: `for-${sub}`,
      token_type: 'Bearer',
      issued_token_type: 'x',
      expires_in: 300,
    };
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));
  });
});

beforeAll(async () => {
  key = await signingKey('k1');
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => provider.close(resolve)));

const exchange = (more: Partial<TokenExchangeSettings> = {}): TokenExchangeSettings => ({
  url: `${origin}/token`,
  plainHttp: 'loopback',
  subjectTokenType: 'access_token',
  allowPrivate: true,
  ...more,
});

/** Has a step look inside, so that no bytes are relayed. */
const INSIDE = { authorization: (_: unknown, next: () => Promise<void>) => next() };

interface Asked extends Pick<PartSettings, 'authz'> {
  readonly inside?: boolean;
}

async function proxyOf(
  server: Parameters<typeof runningProxy>[0],
  { inside = false, authz, ...more }: Partial<TokenExchangeSettings> & Asked = {},
): Promise<RunningProxy> {
  asked.length = 0;
  status = 200;
  return runningProxy(server, {
    signIn: { issuer: ISSUER, jwksUrl: `${origin}/jwks`, audience: AUDIENCE, allowHttp: true, allowPrivateIP: true },
    parts: { exchange: exchange(more), authz },
    clock: manualClock(),
    ...(inside ? { steps: INSIDE } : {}),
  });
} // prettier-ignore

const bearer = async (sub: string) => ({ Authorization: `Bearer ${await signed(key, { sub })}` });
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };

/** What the server was shown, once each. */
function shown({ headers }: Pick<ScriptedHttpServer, 'headers'>, name = 'authorization'): readonly unknown[] {
  return [...new Set(headers.map((one) => one[name]))];
}

describe.each([
  ['relayed', false],
  ['where a step looks inside', true],
])('a server of HTTP, %s', (_how, inside) => {
  test('gets the new token of each client with all that this client sends, and never the old one', async () => {
    await using server = await scriptedHttpServer('http');
    await using proxy = await proxyOf(server, { inside });
    for (const sub of ['ann', 'eve']) {
      const before = server.headers.length;
      const headers = await bearer(sub);
      const started = await postJson(proxy.url, initializeRequest(), headers);
      const session = { ...headers, 'Mcp-Session-Id': String(started.headers['mcp-session-id']) };
      await postJson(proxy.url, { jsonrpc: '2.0', method: 'notifications/initialized' }, session);
      expect(await postJson(proxy.url, call, session)).toMatchObject({ status: 200 });
      expect(shown({ headers: server.headers.slice(before) })).toEqual([`Bearer for-${sub}`]);
    }
    expect(asked).toHaveLength(2);
  });

  test('gets it in a header of its own, where one is named', async () => {
    await using server = await scriptedHttpServer('http');
    await using proxy = await proxyOf(server, { inside, headerName: 'X-Upstream-Token' });
    await postJson(proxy.url, call, { ...(await bearer('ann')), 'X-Upstream-Token': 'mine', Connection: 'x-upstream-token' });
    expect(shown(server, 'x-upstream-token')).toEqual(['Bearer for-ann']);
    expect(shown(server)).toEqual([undefined]);
  }); // prettier-ignore

  test('gets it of modern clients too, of each its own', async () => {
    await using server = await scriptedHttpServer('http');
    await using proxy = await proxyOf(server, { inside });
    for (const sub of ['ann', 'eve']) {
      const before = server.headers.length;
      const { body, headers } = modernRequest('tools/call', { name: 'x' });
      const answer = await askModern(proxy.url, { body, headers: { ...headers, ...(await bearer(sub)) } });
      expect(answer).toMatchObject({ status: 200 });
      expect(shown({ headers: server.headers.slice(before) })).toEqual([`Bearer for-${sub}`]);
    }
  });

  test.each([
    [400, 401, 'token exchange failed'],
    [503, 503, 'the identity provider does not answer'],
  ])('hears nothing where the endpoint answers %i', async (answered, expected, text) => {
    await using server = await scriptedHttpServer('http');
    await using proxy = await proxyOf(server, { inside });
    status = answered;
    const answer = await postJson(proxy.url, call, await bearer('ann'));
    expect(answer).toMatchObject({ status: expected, text });
    expect(server.headers).toEqual([]);
  });

  test('of the older transport gets it too', async () => {
    await using server = await scriptedHttpServer('sse');
    await using proxy = await proxyOf(server, { inside });
    const headers = await bearer('ann');
    const stream = await openStream(proxy.url, { method: 'GET', headers: { ...headers, Accept: 'text/event-stream' } });
    const endpoint = new URL((await stream.next())?.data ?? '', proxy.url).href;
    await postJson(endpoint, initializeRequest(), headers);
    await stream.next();
    expect(server.headers.length).toBeGreaterThan(1);
    expect(shown(server)).toEqual(['Bearer for-ann']);
    stream.abort();
  }); // prettier-ignore
});

describe('where policies heed what the server says of its tools', () => {
  const policies = [
    'permit(principal, action, resource);',
    'forbid(principal, action, resource) when { resource has destructiveHint && resource.destructiveHint };',
  ];
  const authz = { document: { version: '1.0', type: 'cedarv1', cedar: { policies } } };
  const script: Script = (message, { reply }) => {
    if (message.method === 'tools/list') reply(message, { tools: [{ name: 'x' }] });
    return message.method === 'tools/list' ? 'handled' : undefined;
  };

  test('it is asked for its tools with the new token', async () => {
    await using server = await scriptedHttpServer('http', script);
    await using proxy = await proxyOf(server, { authz });
    expect(await postJson(proxy.url, call, await bearer('ann'))).toMatchObject({ status: 200 });
    expect(server.received.map(({ method }) => method)).toContain('tools/list');
    expect(shown(server)).toEqual(['Bearer for-ann']);
  });

  test.each([400, 503])('it is asked nothing where the endpoint answers %i', async (answered) => {
    await using server = await scriptedHttpServer('http', script);
    await using proxy = await proxyOf(server, { authz });
    status = answered;
    expect((await postJson(proxy.url, call, await bearer('ann'))).status).toBeGreaterThan(400);
    expect(server.headers).toEqual([]);
  });
});

test('without signing in, and over stdio, nothing is exchanged', async () => {
  await using server = await scriptedHttpServer('http');
  await using open = await runningProxy(server, { parts: { exchange: exchange() } });
  asked.length = 0;
  await postJson(open.url, call, { Authorization: 'Bearer own' });
  expect(shown(server)).toEqual(['Bearer own']);
  await using piped = await proxyOf(scriptedServer());
  expect(await postJson(piped.url, call, await bearer('ann'))).toMatchObject({ status: 200 });
  expect(asked).toEqual([]);
});

test('whoever hosts the proxy needs no exchange', async () => {
  await using server = await scriptedHttpServer('http');
  await using proxy = await proxyOf(server);
  const headers = { 'X-Skep-Pass': proxy.pass ?? '' };
  expect(await postJson(proxy.url, initializeRequest(), headers)).toMatchObject({ status: 200 });
  expect(asked).toEqual([]);
});

test('a token endpoint at an address that is not public is asked only where that is allowed', async () => {
  await using server = await scriptedHttpServer('http');
  await using proxy = await proxyOf(server, { allowPrivate: false });
  expect(await postJson(proxy.url, call, await bearer('ann'))).toMatchObject({ status: 503 });
  expect(asked).toEqual([]);
});

test.each(['', 'a b', 'Host', 'mcp-session-id', 'Transfer-Encoding', 'x'.repeat(257)])(
  'no header "%s" carries a token',
  async (headerName) => {
    const services = { clock: manualClock(), log: silentLog, transport: 'streamable-http' } as const;
    const opening = openTokenExchange(exchange({ headerName }), services);
    await expect(opening).rejects.toMatchObject({ code: 'usage/invalid-value' });
  },
);
