import { createServer } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIENCE, ISSUER, signed, signingKey, type SigningKey } from '@skep/auth/token/tokens.fixture.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import type { Step } from './call/chain.ts';
import {
  clientOf,
  FACES,
  faced,
  isRelayed,
  isSse,
  strangerTo,
  type FaceClient,
  type Faced,
  type FaceName,
} from './doubles/faces.ts';
import { ask, type Answer } from './doubles/http-client.ts';
import { modernRequest, modernScript } from './doubles/modern.ts';
import type { Script } from './doubles/scripted-server.ts';
import { isCall, silent } from './doubles/started-mux.ts';
import { webhookReceiver, type WebhookReceiver } from './doubles/webhook-receiver.ts';
import { httpServer, listenOn } from './listener.ts';
import { META } from './message/envelope.ts';
import type { ProxyOptions } from './start.ts';

// docs/behaviour/proxy.md#failures, row by row, wherever clients and servers can meet so.

/** Echoed as it is: no number of JavaScript. */
const ID = '12345678901234567890';
const request = (method: string, params: object = {}): string =>
  `{"jsonrpc":"2.0","id":${ID},"method":"${method}","params":${JSON.stringify(params)}}`;
const CALL = request('tools/call', { name: 'x' });

interface Acting extends Faced {
  readonly client: FaceClient;
}

interface Row {
  readonly name: string;
  readonly on: readonly FaceName[];
  readonly options?: (beside: Beside) => Partial<ProxyOptions>;
  readonly script?: Script;
  readonly act: (it: Acting) => Promise<Answer>;
  readonly status: number;
  /** Code and message of a JSON-RPC error; a body of text otherwise. */
  readonly error?: readonly [code: number, message: string];
  readonly text?: string;
  /** The id of the request is in the error. */
  readonly echoes?: true;
  readonly headers?: Readonly<Record<string, RegExp>>;
  /** Nobody can begin a session there. */
  readonly isAlone?: true;
  /** The server has had the call, or is gone. */
  readonly isOver?: true;
}

const posting =
  (body: string | Buffer, headers: Record<string, string> = {}): Row['act'] =>
  ({ client }) =>
    client.send(body, headers);

/** A request with nothing but these headers. */
const asking =
  (method: string, path?: string, own: Record<string, string> = {}): Row['act'] =>
  ({ proxy, client }) => {
    const headers = { Accept: 'text/event-stream', 'Content-Type': 'application/json', ...own };
    const url = path === undefined ? client.url : new URL(path, proxy.origin).href;
    return ask(url, { method, headers, ...(method === 'POST' && { body: CALL }) });
  };

/** A request of a modern client, which takes JSON alone. */
const modern =
  (method: string, headers: Record<string, string> = {}, meta: object = {}): Row['act'] =>
  ({ proxy }) => {
    const made = modernRequest(method, {}, { ...meta });
    const own = { 'Content-Type': 'application/json', ...JSON_ONLY, ...made.headers, ...headers };
    return ask(proxy.url, { body: made.body.replace('"id":1', `"id":${ID}`), headers: own });
  };

const JSON_ONLY = { Accept: 'application/json' };
const POSTED = FACES.filter((face) => !isSse(face));
/** Where the proxy itself is the MCP server. */
const OWN = FACES.filter((face) => !isRelayed(face));
const OWN_POSTED = OWN.filter((face) => !isSse(face));
const OWN_SSE = OWN.filter(isSse);
const OVER_HTTP = FACES.filter((face) => !face.startsWith('stdio'));

const signIn = ({ origin }: Beside, more: object = {}): Partial<ProxyOptions> => ({
  signIn: {
    issuer: ISSUER,
    jwksUrl: `${origin}/jwks`,
    audience: AUDIENCE,
    allowHttp: true,
    allowPrivateIP: true,
    ...more,
  },
});
const exchange = (beside: Beside, path: string): Partial<ProxyOptions> => {
  const url = beside.origin + path;
  const settings = {
    url,
    plainHttp: 'loopback',
    subjectTokenType: 'access_token',
    allowPrivate: true,
  } as const;
  return { ...signIn(beside), parts: { exchange: settings } };
};
const webhooks =
  (kind: 'validating' | 'mutating') =>
  ({ hook }: Beside): Partial<ProxyOptions> => ({
    parts: { webhooks: { validating: [], mutating: [], [kind]: [hook.settings()] } },
  });
const limits = (): Partial<ProxyOptions> => ({
  parts: { rateLimit: { tools: [{ name: 'x', shared: { maxTokens: 1, refillMs: 60_000 } }] } },
});
const POLICIES = ['forbid(principal, action, resource);'];
const policies = (): Partial<ProxyOptions> => ({
  parts: { authz: { document: { version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES } } } },
});
const filter = (): Partial<ProxyOptions> => ({ parts: { tools: { filter: ['y'] } } });
const hasty = (): Partial<ProxyOptions> => ({ requestTimeoutMs: 50 });
const fails: Step = (call, next) => {
  if (call.req.headers['x-fail'] === undefined) return next();
  return Promise.reject(new TypeError('a defect'));
};

/** Lists what is no tool. */
const nameless: Script = (message, { reply }) => {
  if (message.method !== 'tools/list') return undefined;
  reply(message, { tools: [{ title: 'nameless' }] });
  return 'handled';
};
/** A modern server that answers `x/y` with an error. */
const refusing = (code: number): Script =>
  modernScript(({ method, id }, { say }) => {
    if (method !== 'x/y') return undefined;
    say(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'no' } }));
    return 'handled';
  });

/** The second of two calls. */
const twice: Row['act'] = async ({ client }) => {
  await client.send(CALL);
  return client.send(CALL);
};
/** The server goes away during the call. */
const breaking =
  (headers: Record<string, string> = {}): Row['act'] =>
  async ({ client, server, cut }) => {
    const answer = client.send(CALL, headers);
    await server.heard(isCall);
    await cut();
    return answer;
  };
const afterwards: Row['act'] = async ({ client, cut, proxy }) => {
  await cut();
  proxy.backendEnded();
  return client.send(CALL, JSON_ONLY);
};
const unreachable: Row['act'] = async ({ client, cut }) => {
  await cut();
  return client.send(CALL, JSON_ONLY);
};
/** As many calls wait as may. */
const flooding: Row['act'] = async ({ client, server }) => {
  const headers = { 'Content-Type': 'application/json', ...JSON_ONLY, ...client.headers };
  for (let sent = 0; sent < 1_024;) {
    for (let at = 0; at < 64; at += 1) ask(client.url, { headers, body: CALL }).catch(() => {});
    sent += 64;
    const waiting = { timeout: 60_000, interval: 5 };
    await expect.poll(() => server.received.filter(isCall).length, waiting).toBe(sent);
  }
  return client.send(CALL);
};

const ROWS: readonly Row[] = [
  { name: 'another origin', on: FACES, act: posting(CALL, { Origin: 'http://evil.test' }), status: 403, error: [-32600, 'Origin not allowed'] },
  { name: 'another host', on: FACES, act: posting(CALL, { Host: 'evil.test' }), status: 403, error: [-32600, 'Host not allowed'] },
  { name: 'a body that is too large', on: FACES, options: () => ({ bodyLimitBytes: 1_000 }), act: posting(' '.repeat(1_001)), status: 413, text: 'Request Entity Too Large' },
  { name: 'a message that is too large for webhooks', on: FACES, options: webhooks('validating'), act: posting(request('x/y', { x: 'x'.repeat(1024 * 1024) })), status: 413, error: [-32600, 'Request Entity Too Large'], echoes: true },
  { name: 'a batch', on: FACES, act: posting(` [${CALL}]`), status: 400, error: [-32600, 'batch requests are not accepted'] },
  { name: 'no JSON', on: FACES, act: posting('{"jsonrpc":'), status: 400, error: [-32700, 'Parse error'] },
  { name: 'no UTF-8', on: FACES, act: posting(Buffer.from(CALL.replace('"x"', '"\xff"'), 'latin1')), status: 400, error: [-32700, 'Parse error'] },
  { name: 'no JSON-RPC', on: FACES, act: posting('{"id":7}'), status: 400, error: [-32600, 'Invalid Request'] },
  { name: 'another media type', on: FACES, act: posting(CALL, { 'Content-Type': 'text/plain' }), status: 415, error: [-32600, 'Content-Type must be application/json'] },
  { name: 'a version that is not known', on: OWN, act: posting(CALL, { 'MCP-Protocol-Version': '1999-01-01' }), status: 400, error: [-32600, 'Unsupported protocol version'], echoes: true },
  { name: 'a header that says otherwise', on: POSTED, act: modern('x/y', { 'Mcp-Method': 'x/z' }), status: 400, error: [-32020, 'Header does not match the request'], echoes: true },
  { name: 'a modern version that is not served', on: POSTED, act: modern('x/y', { 'MCP-Protocol-Version': 'v9' }, { [META.version]: 'v9' }), status: 400, error: [-32022, 'Unsupported protocol version'], echoes: true },
  { name: 'capabilities that are none', on: POSTED, act: modern('x/y', {}, { [META.capabilities]: 1 }), status: 400, error: [-32602, 'Protocol version'], echoes: true },
  { name: 'a capability that a modern server needs', on: OWN_POSTED, script: refusing(-32021), isAlone: true, act: modern('x/y'), status: 400, error: [-32021, 'no'], echoes: true },
  { name: 'a method that the revision took away', on: POSTED, act: modern('ping'), status: 404, error: [-32601, 'Method not found'], echoes: true },
  { name: 'a method that a modern server does not know', on: OWN_POSTED, script: refusing(-32601), isAlone: true, act: modern('x/y'), status: 404, error: [-32601, 'no'], echoes: true },
  { name: 'no credentials', on: FACES, options: signIn, act: asking('POST'), status: 401, text: '"error_description"', headers: { 'www-authenticate': /^Bearer (?!.*error)/u } },
  { name: 'a token that is none', on: FACES, options: signIn, act: posting(CALL, { Authorization: 'Bearer x' }), status: 401, text: '"error":"invalid_token"', headers: { 'www-authenticate': /error="invalid_token"/u } },
  { name: 'a token without the scope', on: FACES, options: (beside) => signIn(beside, { requiredScopes: ['call'] }), isAlone: true, act: posting(CALL), status: 403, text: 'insufficient_scope', headers: { 'www-authenticate': /error="insufficient_scope"/u } },
  { name: 'keys that cannot be had', on: FACES, options: (beside) => signIn(beside, { jwksUrl: `${beside.origin}/fails` }), isAlone: true, act: posting(CALL), status: 503, text: 'does not answer', headers: { 'retry-after': /^\d+$/u } },
  { name: 'a token that the endpoint refuses', on: OVER_HTTP, options: (beside) => exchange(beside, '/refuses'), isAlone: true, act: posting(CALL), status: 401, text: 'token exchange failed' },
  { name: 'a token endpoint that fails', on: OVER_HTTP, options: (beside) => exchange(beside, '/fails'), isAlone: true, act: posting(CALL), status: 503, text: 'does not answer', headers: { 'retry-after': /^10$/u } },
  { name: 'a call that no policy permits', on: OWN, options: policies, act: posting(CALL), status: 403, error: [403, 'Unauthorized'], echoes: true },
  { name: 'a tool that clients do not have', on: OWN_POSTED, options: filter, act: posting(CALL, JSON_ONLY), status: 200, error: [-32602, 'tool not found'], echoes: true },
  { name: 'a tool that clients do not have, on a stream', on: OWN_SSE, options: filter, act: posting(CALL), status: 202, error: [-32602, 'tool not found'], echoes: true },
  { name: 'too many calls', on: FACES, options: limits, act: twice, status: 429, isOver: true, error: [429, 'Rate limit exceeded'], echoes: true, headers: { 'retry-after': /^\d+$/u } },
  { name: 'a webhook that denies', on: FACES, options: webhooks('validating'), act: posting(CALL), status: 403, error: [403, 'Request denied by policy'], echoes: true },
  { name: 'a webhook that changes calls and denies', on: OWN, options: webhooks('mutating'), act: posting(CALL), status: 403, error: [403, 'Request denied by webhook policy'], echoes: true },
  { name: 'a webhook that changes calls and fails', on: OWN, options: webhooks('mutating'), act: posting(request('tools/call', { name: 'fails' })), status: 500, error: [-32603, 'Webhook error'], echoes: true },
  { name: 'a list that cannot be understood', on: OWN_POSTED, options: filter, script: nameless, act: posting(request('tools/list'), JSON_ONLY), status: 500, error: [-32603, 'Internal error'], echoes: true },
  { name: 'a list that cannot be understood, as an event', on: OWN_POSTED, options: filter, script: nameless, act: posting(request('tools/list')), status: 200, error: [-32603, 'Internal error'], echoes: true },
  { name: 'a list that cannot be understood, on a stream', on: OWN_SSE, options: filter, script: nameless, act: posting(request('tools/list')), status: 202, error: [-32603, 'Internal error'], echoes: true },
  { name: 'GET without a session', on: OWN_POSTED, act: asking('GET'), status: 400, text: 'Mcp-Session-Id header is required' },
  { name: 'DELETE without a session', on: OWN_POSTED, act: asking('DELETE'), status: 400, text: 'Mcp-Session-Id header is required' },
  { name: 'POST without a session', on: OWN_SSE, act: asking('POST', '/messages'), status: 400, text: 'session_id is required' },
  { name: 'POST in an unknown session', on: POSTED, act: posting(CALL, { 'Mcp-Session-Id': 'unknown' }), status: 404, error: [-32001, 'Session not found'], echoes: true },
  { name: 'POST in a session that is not there', on: OWN_SSE, act: asking('POST', '/messages?session_id=unknown'), status: 404, error: [-32001, 'Session not found'], echoes: true },
  { name: 'GET in an unknown session', on: POSTED, act: asking('GET', undefined, { 'Mcp-Session-Id': 'unknown' }), status: 404, error: [-32001, 'Session not found'] },
  { name: 'DELETE in an unknown session', on: POSTED, act: asking('DELETE', undefined, { 'Mcp-Session-Id': 'unknown' }), status: 404, error: [-32001, 'Session not found'] },
  { name: 'another HTTP method', on: OWN, act: asking('PUT'), status: 405, text: 'Method Not Allowed', headers: { allow: /POST.*OPTIONS$/u } },
  { name: 'GET of a modern client', on: POSTED, act: asking('GET', undefined, { 'MCP-Protocol-Version': '2026-07-28' }), status: 405, text: 'Method Not Allowed', headers: { allow: /^POST, OPTIONS$/u } },
  { name: 'an answer that cannot be', on: OWN_POSTED, act: posting(CALL, { Accept: 'text/html' }), status: 406, error: [-32000, 'Not Acceptable'], echoes: true },
  { name: 'a stream that cannot be', on: OWN, act: ({ proxy, client }) => ask(proxy.url, { method: 'GET', headers: { ...client.headers, ...JSON_ONLY } }), status: 406, error: [-32000, 'Not Acceptable'] },
  { name: 'no answer in time', on: POSTED, options: hasty, script: silent, act: posting(CALL, JSON_ONLY), status: 504, error: [-32000, 'Timeout'], echoes: true, isOver: true },
  { name: 'no answer in time, as an event', on: OWN_POSTED, options: hasty, script: silent, act: posting(CALL), status: 200, error: [-32000, 'Timeout'], echoes: true, isOver: true },
  { name: 'no answer in time, on a stream', on: OWN_SSE, options: hasty, script: silent, act: posting(CALL), status: 202, error: [-32000, 'Timeout'], echoes: true, isOver: true },
  { name: 'a server that goes away', on: POSTED, script: silent, act: breaking(JSON_ONLY), status: 502, error: [-32603, ''], echoes: true, isOver: true },
  { name: 'a server that goes away, as an event', on: OWN_POSTED, script: silent, act: breaking(), status: 200, error: [-32603, ''], echoes: true, isOver: true },
  { name: 'a server that goes away, on a stream', on: OWN_SSE, script: silent, act: breaking(), status: 202, error: [-32603, ''], echoes: true, isOver: true },
  { name: 'a server that cannot be reached', on: ['relayed HTTP', 'HTTP'], options: () => ({ clock: manualClock() }), act: unreachable, status: 502, error: [-32603, 'Bad gateway'], echoes: true, isOver: true },
  { name: 'a server that has ended', on: FACES, act: afterwards, status: 503, error: [-32000, 'the server stopped'], echoes: true, headers: { 'retry-after': /^5$/u }, isOver: true },
  { name: 'a server that takes no more', on: ['stdio'], script: silent, act: flooding, status: 503, error: [-32000, 'the server takes no more'], echoes: true, headers: { 'retry-after': /^1$/u }, isOver: true },
  { name: 'a server that takes no more, on a stream', on: ['stdio by SSE'], script: silent, act: flooding, status: 202, error: [-32000, 'the server takes no more'], echoes: true, isOver: true },
  { name: 'a defect', on: FACES, options: () => ({ steps: { 'rate-limit': fails } }), act: posting(CALL, { 'X-Fail': '1' }), status: 500, text: 'Internal Server Error' },
]; // prettier-ignore

/** What beside the proxy is asked: an identity provider, a token endpoint, a webhook. */
interface Beside {
  readonly origin: string;
  readonly hook: WebhookReceiver;
}

let key: SigningKey;
let beside: Beside;
/** Whoever has not finished a request, and what came of it. */
let unfinished: Promise<string>;
const slow = httpServer();

const provider = createServer((req, res) => {
  req.resume();
  const isKeys = req.url === '/jwks';
  res.writeHead(isKeys ? 200 : req.url === '/refuses' ? 400 : 500, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify(isKeys ? { keys: [key.jwk] } : { error: 'invalid_grant' }));
});

beforeAll(async () => {
  const port = await listenOn(slow, '127.0.0.1', 0);
  unfinished = new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk))).on('close', () => resolve(text));
    socket.on('error', () => {}).write('POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le');
  });
  key = await signingKey('k1');
  const origin = `http://127.0.0.1:${await listenOn(provider, '127.0.0.1', 0)}`;
  const hook = await webhookReceiver(({ body }) => {
    if (body.includes('"fails"')) return (res) => void res.writeHead(500).end();
    return { allowed: !body.includes('"method":"tools/call"') };
  });
  beside = { origin, hook };
});
afterAll(async () => {
  slow.close();
  provider.close();
  await beside.hook[Symbol.asyncDispose]();
});

async function authorization(): Promise<{ readonly Authorization: string }> {
  const now = Math.floor(Date.now() / 1_000);
  return { Authorization: `Bearer ${await signed(key, { iat: now, exp: now + 600 })}` };
}

/** The answer is what its row says, and nothing else is in it. */
function check({ error, echoes, text, status, headers = {} }: Row, answer: Answer): void {
  expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(text ?? '')]);
  for (const [name, value] of Object.entries(headers)) expect(answer.headers[name]).toMatch(value);
  if (error === undefined) return;
  const [code, message] = error;
  expect(answer.text.includes(`"id":${ID}`)).toBe(echoes === true);
  expect(Object.keys(JSON.parse(answer.text)).toSorted()).toEqual(
    echoes === true ? ['error', 'id', 'jsonrpc'] : ['error', 'jsonrpc'],
  );
  expect(JSON.parse(answer.text)).toMatchObject({
    jsonrpc: '2.0',
    error: { code, message: expect.stringContaining(message) },
  });
}

const CASES = ROWS.flatMap((row) => row.on.map((face) => [row.name, face, row] as const));

describe('a failure is answered as its row says, and its client goes on', () => {
  test.each(CASES)('%s: %s', async (_name, face, row) => {
    await using it = await faced(face, row.script, row.options?.(beside));
    const own = await authorization();
    const client = row.isAlone ? strangerTo(it, own) : await clientOf(it, own);
    const before = it.server.received.length;
    const answer = await row.act({ ...it, client });
    check(row, answer);
    if (!row.isOver) {
      const called = it.server.received.slice(before).filter(isCall);
      expect(called).toEqual([]);
    }
    if (!row.isOver && !row.isAlone)
      expect((await client.send('{"jsonrpc":"2.0","id":7,"method":"ping"}')).text).toContain(
        '"id":7,"result":{',
      );
    expect((await ask(`${it.proxy.origin}/health`, { method: 'GET' })).status).not.toBe(500);
    client.leave();
  });

  test('a request that is never finished: 408, or the end of the connection', async () => {
    expect(await unfinished).toMatch(/^(?:HTTP\/1\.1 408 Request Timeout\r\n.*)?$/su);
  }, 30_000);
});
