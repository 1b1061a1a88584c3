import { createServer } from 'node:http';
import { once } from 'node:events';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { expect, onTestFinished, test } from 'vitest';
import { readTarget } from './call/target.ts';
import { ask, postJson } from './doubles/http-client.ts';
import { newSession, runningProxy } from './doubles/running-proxy.ts';
import { scriptedServer } from './doubles/scripted-server.ts';
import type { Backend } from './backend/backend.ts';
import type { Proxy } from './start.ts';

const PREFIX = '/one';

/** Another listener of this process, with the proxy below `/one`. */
async function entrance(proxy: Proxy): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void (server.closeAllConnections(), server.close()));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const serve = proxy.behind({ host: '127.0.0.1', port, prefix: PREFIX });
  server.on('request', (req, res) => serve(req, res, readTarget((req.url ?? '').slice(PREFIX.length))));
  return `http://127.0.0.1:${port}${PREFIX}`;
}

test('a session begun at one entrance goes on at the other', async () => {
  await using proxy = await runningProxy(scriptedServer());
  const url = await entrance(proxy);
  const session = await newSession(`${url}/mcp`);
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} };
  expect((await postJson(proxy.url, call, session)).status).toBe(200);
  expect((await ask(proxy.url, { method: 'DELETE', headers: session })).status).toBe(204);
  expect((await postJson(`${url}/mcp`, call, session)).status).toBe(404);
});

test('limits are the same at every entrance', async () => {
  await using proxy = await runningProxy(scriptedServer(), { bodyLimitBytes: 1_024 });
  const url = await entrance(proxy);
  expect((await postJson(`${url}/mcp`, 'x'.repeat(2_000))).status).toBe(413);
});

test('a stop ends calls that do not end by themselves, and refuses what comes later', async () => {
  const clock = manualClock();
  const server = scriptedServer(({ method }) => (method === 'tools/call' ? 'handled' : undefined));
  await using proxy = await runningProxy(server, { clock });
  const url = await entrance(proxy);
  const session = await newSession(`${url}/mcp`);
  const answer = postJson(`${url}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/call' }, session);
  await server.heard(({ method }) => method === 'tools/call');
  let isClosed = false;
  const closed = proxy.close().then(() => (isClosed = true));
  expect((await postJson(`${url}/mcp`, '{}', session)).status).toBe(503);
  expect(isClosed).toBe(false);
  clock.pass(1_000);
  await closed;
  expect((await answer).text).toContain('"error"');
});

test.each([
  ['/mcp/', '/one/mcp/'],
  ['mcp/?a=1#b', '/one/mcp/?a=1#b'],
  ['../../other/mcp', '/one/other/mcp'],
  ['TARGET/mcp/', '/one/mcp/'],
  ['//TARGET_HOST/x', '/one/x'],
  ['https://elsewhere.example/mcp', 'https://elsewhere.example/mcp'],
  ['//elsewhere.example/mcp', '//elsewhere.example/mcp'],
  ['http://[', 'http://['],
])('a redirect to %s leads back through the entrance', async (location, expected) => {
  let asked: unknown;
  const server = createServer((req, res) => {
    asked = req.headers['x-forwarded-prefix'];
    const at = `127.0.0.1:${req.socket.localPort}`;
    const to = location.replace('TARGET_HOST', at).replace('TARGET', `http://${at}`);
    res.writeHead(307, { Location: to }).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void (server.closeAllConnections(), server.close()));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const backend: Backend = { kind: 'http', target: new URL(`http://127.0.0.1:${port}`) };
  await using proxy = await runningProxy({ backend });
  const url = await entrance(proxy);
  const answer = await ask(`${url}/mcp`, { method: 'GET', headers: { 'X-Forwarded-Prefix': '/other' } });
  expect([answer.status, answer.headers.location, asked]).toEqual([307, expected, PREFIX]);
  const own = await ask(`${proxy.origin}/mcp`, {
    method: 'GET',
    headers: { 'X-Forwarded-Prefix': '/other' },
  });
  expect([own.headers.location, asked]).toEqual([expected.replace(/^\/one/u, ''), undefined]);
});

test.each(['/one', '/'])(
  'the stream of an SSE server that puts what it is told before its address, below %s',
  async (below) => {
    const server = createServer((req, res) => {
      const told = String(req.headers['x-forwarded-prefix'] ?? '');
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.end(`event: endpoint\ndata: ${told}${below}/messages\n\n`.replace('//', '/'));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void (server.closeAllConnections(), server.close()));
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const backend: Backend = { kind: 'sse', target: new URL(`http://127.0.0.1:${port}`) };
    for (const [options, before] of [
      [{}, ''],
      [{ endpointPrefix: '/own' }, '/own'],
    ] as const) {
      await using proxy = await runningProxy({ backend }, options);
      const stream = await ask(`${await entrance(proxy)}/sse`, { method: 'GET', headers: {} });
      expect(stream.text).toContain(`data: ${`${before}/one${below}/messages`.replace('//', '/')}\n`);
    }
  },
);
