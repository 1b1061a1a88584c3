import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { once } from 'node:events';
import { connect } from 'node:net';
import { silentLog, type Log } from '@skep/core/log/log.ts';
import { describe, expect, test } from 'vitest';
import { ask, openStream } from '../../doubles/http-client.ts';
import { runningProxy, SETTINGS } from '../../doubles/running-proxy.ts';
import { startProxy } from '../../start.ts';
import type { HttpBackend } from '../backend.ts';

const backendServer = async (
  onRequest: RequestListener,
): Promise<AsyncDisposable & { backend: HttpBackend; server: Server }> => {
  const server = createServer(onRequest);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    server,
    backend: { kind: 'http', target: new URL(`http://127.0.0.1:${port}`) },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
};

const readAll = async (req: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of req.setEncoding('utf8')) text += String(chunk);
  return text;
};

describe('a backend that speaks HTTP itself', () => {
  test("gets path, query, method and body as they came, and the proxy's own forwarding headers", async () => {
    let seen: IncomingMessage | undefined;
    let body = '';
    await using target = await backendServer((req, res) => {
      seen = req;
      void readAll(req).then((text) => {
        body = text;
        res.writeHead(201, {
          'X-Own': 'yes',
          'Access-Control-Allow-Origin': '*',
          Connection: 'keep-alive, X-Hop',
          'X-Hop': '1',
        });
        res.end('{"ok" : 1.0}');
      });
    });
    await using proxy = await runningProxy(target);
    const sent = '{ "jsonrpc":"2.0", "id":12345678901234567890,\n "method":"x" }';
    const answer = await ask(`${proxy.origin}/some/path?a=1,2&b=%2F`, {
      body: sent,
      headers: {
        'Content-Type': 'application/json',
        'X-Forwarded-For': '6.6.6.6',
        Forwarded: 'for=6.6.6.6',
        'X-Forwarded-User': 'root',
        'X-Forwarded-Client-Cert': 'Subject="CN=root"',
        'X-Real-IP': '6.6.6.6',
        Connection: 'close, X-Drop',
        'X-Drop': '1',
        'Mcp-Param-City': 'x',
      },
    });
    expect([answer.status, answer.text, body]).toEqual([201, '{"ok" : 1.0}', sent]);
    expect(seen?.url).toBe('/some/path?a=1,2&b=%2F');
    expect(seen?.headers).toMatchObject({
      host: target.backend.target.host,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': `127.0.0.1:${proxy.port}`,
      'x-forwarded-proto': 'http',
      'mcp-param-city': 'x',
    });
    for (const name of 'forwarded x-forwarded-user x-forwarded-client-cert x-real-ip x-drop'.split(' '))
      expect(seen?.headers[name]).toBeUndefined();
    expect(answer.headers).toMatchObject({ 'x-own': 'yes' });
    for (const name of ['access-control-allow-origin', 'x-hop']) expect(answer.headers[name]).toBeUndefined();
  });

  test.each([
    ['HEAD', 200],
    ['GET', 304],
  ])('has its answer to %s (%i) told, which announces a body that it has not', async (method, status) => {
    await using target = await backendServer((_req, res) => {
      res.writeHead(status, { 'Content-Length': 10 }).end();
    });
    await using proxy = await runningProxy(target);
    const answer = await ask(`${proxy.origin}/some/page`, { method });
    expect([answer.status, answer.text]).toEqual([status, '']);
  });

  test('streams as it writes, and hears when the client goes away', async () => {
    const aborted = Promise.withResolvers<void>();
    await using target = await backendServer((_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
      res.once('close', () => aborted.resolve());
    });
    await using proxy = await runningProxy(target);
    const stream = await openStream(proxy.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
    expect((await stream.next())?.data).toBe('1');
    stream.abort();
    await aborted.promise;
  });

  test('hears when the client goes away before there is an answer', async () => {
    const [reached, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await using target = await backendServer((req) => {
      req.socket.once('close', () => aborted.resolve());
      reached.resolve();
    });
    await using proxy = await runningProxy(target);
    const socket = connect(proxy.port, '127.0.0.1');
    socket.write(`GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:${proxy.port}\r\n\r\n`);
    await reached.promise;
    socket.destroy();
    await aborted.promise;
  });

  test('that is not there is answered 502 with the id of the request', async () => {
    const target = await backendServer(() => {});
    await target[Symbol.asyncDispose]();
    await using proxy = await runningProxy(target);
    const answer = await ask(proxy.url, {
      body: '{"jsonrpc":"2.0","id":"q","method":"x"}',
      headers: { 'Content-Type': 'application/json' },
    });
    expect(answer.status).toBe(502);
    const health = await ask(`${proxy.origin}/health`, { method: 'GET' });
    expect(JSON.parse(health.text)).toMatchObject({ status: 'degraded', mcp: { available: false } });
    expect(JSON.parse(answer.text)).toEqual({
      jsonrpc: '2.0',
      id: 'q',
      error: { code: -32603, message: 'Bad gateway' },
    });
  });

  test('stands behind the same guards', async () => {
    let reached = 0;
    await using target = await backendServer((_req, res) => {
      reached += 1;
      res.end();
    });
    await using proxy = await runningProxy(target, { bodyLimitBytes: 10 });
    const statuses = [
      (await ask(proxy.url, { body: '[]', headers: { 'Content-Type': 'text/plain' } })).status,
      (await ask(proxy.url, { body: 'x'.repeat(11), headers: {} })).status,
      (await ask(proxy.url, { body: 'x', headers: { Host: 'evil.example' } })).status,
      (await ask(proxy.url, { body: '{}', headers: { 'Content-Type': 'text/plain' } })).status,
      (await ask(`${proxy.origin}/.well-known/x`, { method: 'GET' })).status,
      (await ask(proxy.url, { method: 'GET', headers: { 'MCP-Protocol-Version': '2026-07-28' } })).status,
    ];
    expect(statuses).toEqual([400, 413, 403, 415, 404, 405]);
    expect(reached).toBe(0);
  });

  test('keeps its open streams from delaying the end of the proxy', async () => {
    await using target = await backendServer((_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
    });
    const proxy = await startProxy({ ...SETTINGS, ...target, graceMs: 60_000 });
    const stream = await openStream(proxy.url, { method: 'GET', headers: {} });
    await stream.next();
    await proxy.close();
    expect(await stream.next()).toBeUndefined();
  });
});

test('a server that gives no answer does not fill the log, whatever clients do', async () => {
  const warned: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields, message) => void warned.push(message), child: () => log };
  await using proxy = await runningProxy(
    { backend: { kind: 'http', target: new URL('http://127.0.0.1:1') } },
    { log },
  );
  for (let n = 0; n < 15; n += 1) await ask(proxy.url, { method: 'GET', headers: {} });
  expect(warned).toHaveLength(10);
});
