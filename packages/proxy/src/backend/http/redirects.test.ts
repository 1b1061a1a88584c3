import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import type { Step } from '../../call/chain.ts';
import { messagesIn, postJson } from '../../doubles/http-client.ts';
import { initializeRequest, newSession, runningProxy } from '../../doubles/running-proxy.ts';
import { INITIALIZED } from '../../doubles/scripted-server.ts';
import type { HttpBackend } from '../backend.ts';

/** A server of this machine whose endpoint has a slash at its end, as many that are mounted into an application. */
async function slashed(to = '/mcp/'): Promise<{ readonly backend: HttpBackend; readonly lines: string[] }> {
  const lines: string[] = [];
  const server = createServer((req, res) => {
    void text(req).then((body) => {
      lines.push(`${req.method} ${req.url} ${body === '' ? '' : JSON.parse(body).method}`);
      if (req.url !== '/mcp/') return res.writeHead(307, { Location: to }).end();
      const { id, method, params } = JSON.parse(body === '' ? '{}' : body);
      if (id === undefined) return res.writeHead(202).end();
      const result = method === 'initialize' ? INITIALIZED : { echo: params };
      res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 's' });
      return res.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void (server.closeAllConnections(), server.close()));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { backend: { kind: 'http', target: new URL(`http://127.0.0.1:${port}`) }, lines };
}

/** Has the proxy read messages. */
const reads: Step = (call, next) => {
  call.replyHooks.push(({ message }) => message);
  return next();
};

test('a redirect of a server here is its client’s, who came by the proxy and goes on by it', async () => {
  const { backend, lines } = await slashed();
  await using proxy = await runningProxy({ backend });
  const answer = await postJson(proxy.url, initializeRequest());
  expect([answer.status, answer.headers.location]).toEqual([307, '/mcp/']);
  expect((await postJson(`${proxy.url}/`, initializeRequest())).status).toBe(200);
  expect(lines).toEqual(['POST /mcp initialize', 'POST /mcp/ initialize']);
});

test('where messages are read the proxy follows it, for its client asks the proxy alone', async () => {
  const { backend, lines } = await slashed();
  await using proxy = await runningProxy({ backend }, { steps: { authorization: reads } });
  const session = await newSession(proxy.url);
  const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'x' } };
  expect(messagesIn(await postJson(proxy.url, call, session))).toEqual([
    { jsonrpc: '2.0', id: 7, result: { echo: { name: 'x' } } },
  ]);
  expect(lines.filter((line) => line.startsWith('POST'))).toEqual([
    'POST /mcp initialize',
    'POST /mcp/ initialize',
    'POST /mcp notifications/initialized',
    'POST /mcp/ notifications/initialized',
    'POST /mcp tools/call',
    'POST /mcp/ tools/call',
  ]);
});

test.each([
  [
    'http://elsewhere.invalid/mcp/',
    'the server sends its clients to another address; give that one in its place',
  ],
  ['/mcp', 'Bad gateway'],
])('where messages are read it is not followed to %s for ever', async (to, message) => {
  const { backend, lines } = await slashed(to);
  await using proxy = await runningProxy({ backend }, { steps: { authorization: reads } });
  const answer = await postJson(proxy.url, initializeRequest());
  expect([answer.status, messagesIn(answer)]).toMatchObject([502, [{ error: { code: -32603, message } }]]);
  expect(lines.length).toBeLessThanOrEqual(11);
});
