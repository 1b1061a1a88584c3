import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { askModern, modernRequest } from '../../doubles/modern.ts';
import { openStream, postJson, type Answer } from '../../doubles/http-client.ts';
import { initializeRequest, runningProxy } from '../../doubles/running-proxy.ts';
import type { HttpBackend } from '../backend.ts';
import { refusalText } from './refusal-text.ts';

const TITLE = 'the server refused the request';
const TOKEN = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2ln';

test.each([
  ['quota is used up\n', `${TITLE}: quota is used up`],
  ['{"error":{"code":-1,"message":"no seat"}}', `${TITLE}: no seat`],
  ['{"error":"access_denied","error_description":"blocked by policy"}', `${TITLE}: blocked by policy`],
  ['{"error":"access_denied"}', `${TITLE}: access_denied`],
  ['{"message":"Forbidden"}', `${TITLE}: Forbidden`],
  ['{"type":"about:blank","title":"Not yours"}', `${TITLE}: Not yours`],
  [`no use of Bearer ${TOKEN} here`, `${TITLE}: no use of Bearer … here`],
  ['a\u001b[31mb\u202ec\r\nd', `${TITLE}: a�[31mb�c d`],
  ['no '.repeat(200), `${TITLE}: ${'no '.repeat(67).slice(0, 200)}…`],
  [`{"message":"${'no '.repeat(5_000)}"}`, TITLE],
  ['<html><title>403</title></html>', TITLE],
  ['{"message":7}', TITLE],
  ['{"message":"cut o', TITLE],
  ['[]', TITLE],
  ['', TITLE],
])('of a refusal with %j is told what its server says', (body, told) => {
  expect(refusalText(body, [])).toBe(told);
});

test.each(['hunter2', 'Bearer hunter2', 'the%20key is hunter2'])(
  'what a server was shown is told to nobody: %s',
  (sent) => {
    const words = `not with ${encodeURIComponent(sent)} or ${sent}`;
    expect(refusalText(JSON.stringify({ message: words }), [sent])).toBe(TITLE);
    expect(refusalText('no key=hunter%32', ['Bearer hunter2'])).toBe(TITLE);
    expect(refusalText('not today', [sent, ''])).toBe(`${TITLE}: not today`);
  },
);

const BODY = '{"error":"forbidden","message":"only for staff"}';
const REFUSAL = { code: -32603, message: `${TITLE}: only for staff` };
const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'x' } };
const errorIn = ({ text: said }: Answer): unknown => JSON.parse(said.replace(/^[\s\S]*data: /u, '')).error;

/** A server that refuses what `isRefused` says, and answers all else. */
async function refusing(kind: HttpBackend['kind'], isRefused: (method: string) => boolean, isEndless = false) {
  const server = createServer((req, res) => {
    void text(req).then((body) => {
      const { id, method } = body === '' ? { method: req.method } : JSON.parse(body);
      if (isRefused(method) && isEndless) res.writeHead(403).write('no seat');
      else if (isRefused(method)) res.writeHead(403, { 'content-type': 'application/json' }).end(BODY);
      else if (kind === 'sse' && req.method === 'GET')
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write('event: endpoint\ndata: /m\n\n');
      else if (id === undefined) res.writeHead(202).end();
      else
        res
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {} } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const target = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const proxy = await runningProxy(
    { backend: { kind, target } },
    // A step that may change messages: no bytes are relayed.
    { steps: { 'mutating-webhook': (_, next) => next() } },
  );
  return {
    proxy,
    async [Symbol.asyncDispose]() {
      await proxy.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
} // prettier-ignore

test('a client hears why a server over HTTP lets nobody in', async () => {
  await using it = await refusing('http', () => true);
  const alone = await postJson(it.proxy.url, initializeRequest(), { Accept: 'application/json' });
  expect([alone.status, errorIn(alone)]).toEqual([403, REFUSAL]);
  const { body, headers } = modernRequest('tools/call', { name: 'x' });
  const modern = await askModern(it.proxy.url, { body, headers });
  expect(errorIn(modern)).toEqual(REFUSAL);
  const once = await postJson(it.proxy.url, call, { Accept: 'application/json' });
  expect([once.status, errorIn(once)]).toEqual([403, REFUSAL]);
});

test('a client hears why one call of its session is refused, as JSON and as an event', async () => {
  await using it = await refusing('http', (method) => method === 'tools/call');
  const begun = await postJson(it.proxy.url, initializeRequest());
  const session = { 'Mcp-Session-Id': begun.headers['mcp-session-id'] };
  const json = await postJson(it.proxy.url, call, { ...session, Accept: 'application/json' });
  expect([json.status, errorIn(json)]).toEqual([403, REFUSAL]);
  const event = await postJson(it.proxy.url, call, session);
  expect([event.status, errorIn(event)]).toEqual([200, REFUSAL]);
});

test.each(['GET', 'initialize'])('a client of HTTP with SSE hears why %s is refused', async (refused) => {
  await using it = await refusing('sse', (method) => method === refused);
  const stream = await openStream(it.proxy.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
  const endpoint = new URL((await stream.next())?.data ?? '', it.proxy.url).href;
  expect((await postJson(endpoint, initializeRequest())).status).toBe(202);
  expect(JSON.parse((await stream.next())?.data ?? '').error).toEqual(REFUSAL);
  stream.abort();
});

test('a refusal without an end over SSE is told all the same, and holds up nothing', async () => {
  await using it = await refusing('sse', (method) => method === 'initialize', true);
  const stream = await openStream(it.proxy.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
  const endpoint = new URL((await stream.next())?.data ?? '', it.proxy.url).href;
  await postJson(endpoint, initializeRequest(7));
  const told = JSON.parse((await stream.next())?.data ?? '');
  expect(told).toEqual({ jsonrpc: '2.0', id: 7, error: { ...REFUSAL, message: `${TITLE}: no seat` } });
  stream.abort();
});
