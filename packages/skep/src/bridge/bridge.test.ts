import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { initializeRequest, runningProxy } from '@skep/proxy/doubles/running-proxy.ts';
import { scriptedServer, type Script } from '@skep/proxy/doubles/scripted-server.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Bridge } from './bridge.ts';

const INITIALIZED = { jsonrpc: '2.0', method: 'notifications/initialized' };
const META = 'io.modelcontextprotocol/';

interface Said {
  readonly id?: unknown;
  readonly method?: string;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** A client on the other side of a bridge to an address. */
function client(url: string, locate: () => Promise<URL> = async () => new URL(url)) {
  const heard: Said[] = [];
  const warnings: string[] = [];
  const bridge = new Bridge(new URL(url), {
    locate,
    write: async (line) => {
      expect(line).not.toContain('\n');
      heard.push(JSON.parse(line) as Said);
    },
    warn: (text) => void warnings.push(text),
    clock: systemClock,
  });
  onTestFinished(() => bridge.close());
  const say = (message: object): Promise<void> => bridge.take(JSON.stringify(message));
  return {
    bridge,
    heard,
    warnings,
    say,
    /** What the server said that matches, once it has. */
    hears: async (matches: (said: Said) => boolean): Promise<Said | undefined> => {
      await expect.poll(() => heard.some(matches), { timeout: 10_000 }).toBe(true);
      return heard.find(matches);
    },
    greet: async (): Promise<void> => {
      await say(initializeRequest(0));
      await say(INITIALIZED);
      await expect.poll(() => heard.some(({ id }) => id === 0), { timeout: 10_000 }).toBe(true);
    },
  };
}

const json = async (req: IncomingMessage): Promise<{ id?: unknown; method?: string }> =>
  JSON.parse((await text(req)) || '{}') as { id?: unknown; method?: string };

const byId =
  (wanted: unknown) =>
  ({ id, method }: Said): boolean =>
    id === wanted && method === undefined;

describe('to a stdio server behind its proxy', () => {
  test('requests are answered under their ids as they were written, in whatever order answers come', async () => {
    await using proxy = await runningProxy(scriptedServer());
    const { bridge, greet, hears, heard } = client(proxy.url);
    await greet();
    for (const id of ['"a"', '7', '12345678901234567890'])
      await bridge.take(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"x"}}`);
    await hears(byId('a'));
    await hears(byId(7));
    await hears(byId(Number('12345678901234567890')));
    expect(heard).toHaveLength(4);
  });

  test('questions of the server and their answers find their way', async () => {
    const script: Script = (message, server) => {
      if (message.method !== 'tools/call') return undefined;
      server.say('{"jsonrpc":"2.0","id":99,"method":"roots/list"}');
      void server
        .heard(({ id, method }) => id === 99 && method === undefined)
        .then((answer) => server.reply(message, { got: answer['result'] }));
      return 'handled';
    };
    await using proxy = await runningProxy(scriptedServer(script));
    const { say, hears } = client(proxy.url);
    const hello = initializeRequest(0) as { params: object };
    await say({ ...hello, params: { ...hello.params, capabilities: { roots: {} } } });
    await say(INITIALIZED);
    await say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } });
    const question = await hears(({ method }) => method === 'roots/list');
    await say({ jsonrpc: '2.0', id: question?.id, result: { roots: [] } });
    expect(await hears(byId(1))).toMatchObject({ result: { got: { roots: [] } } });
  });

  test('what the server says by itself is heard', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const { greet, heard } = client(proxy.url);
    await greet();
    const changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
    // Until the client listens, it hears nothing.
    const hasHeard = (): boolean => {
      server.say(changed);
      return heard.some(({ method }) => method === 'notifications/tools/list_changed');
    };
    await expect.poll(hasHeard, { timeout: 8_000 }).toBe(true);
  });

  test('a server that was started anew gets a new session, which the client does not notice', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const { greet, say, hears, heard } = client(proxy.url);
    await greet();
    proxy.backendStarted();
    await say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } });
    expect(await hears(byId(1))).toMatchObject({ result: { echo: { name: 'x' } } });
    expect(heard.filter(byId(0))).toHaveLength(1);
  });

  test('a proxy that comes back elsewhere is found', async () => {
    const server = scriptedServer();
    const first = await runningProxy(server);
    let now = first.url;
    const { greet, say, hears } = client(first.url, async () => new URL(now));
    await greet();
    await first.close();
    await using second = await runningProxy(scriptedServer());
    now = second.url;
    await say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } });
    expect(await hears(byId(1))).toMatchObject({ result: { echo: { name: 'x' } } });
  });

  test('one that was stopped for good ends the bridge, and what waits is answered', async () => {
    const proxy = await runningProxy(scriptedServer());
    const stopped = new SkepError('run/ended', { message: '"x" is stopped', hint: 'start it' });
    const { bridge, greet, say, hears } = client(proxy.url, () => Promise.reject(stopped));
    await greet();
    await proxy.close();
    await say({ jsonrpc: '2.0', id: 1, method: 'tools/call' });
    await expect(bridge.failed).rejects.toBe(stopped);
    expect(await hears(byId(1))).toMatchObject({ error: { code: -32_000, message: '"x" is stopped' } });
  });

  test('a call that was cut off is answered with an error, and not sent twice', async () => {
    const server = scriptedServer(({ method }) => (method === 'tools/call' ? 'handled' : undefined));
    await using proxy = await runningProxy(server);
    const { greet, say, hears } = client(proxy.url);
    await greet();
    await say({ jsonrpc: '2.0', id: 1, method: 'tools/call' });
    await server.heard(({ method }) => method === 'tools/call');
    proxy.backendEnded();
    expect((await hears(byId(1)))?.error).toBeDefined();
    expect(server.received.filter(({ method }) => method === 'tools/call')).toHaveLength(1);
  });

  test('at its end it waits for answers, and ends its session', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const { bridge, greet, say, heard } = client(proxy.url);
    await greet();
    await say({ jsonrpc: '2.0', id: 1, method: 'tools/call' });
    await bridge.finish();
    expect(heard.some(byId(1))).toBe(true);
  });

  test('lines that are no messages are told, and passed to nobody', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const { bridge, warnings } = client(proxy.url);
    for (const line of ['nonsense', '[]', '{"a":1}', '['.repeat(2_000)]) await bridge.take(line);
    expect(warnings).toHaveLength(4);
    expect(server.received).toEqual([]);
  });
});

describe('to a server that speaks HTTP itself', () => {
  async function serverOf(answer: (req: IncomingMessage, res: ServerResponse) => void) {
    const server = createServer(answer).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void (server.closeAllConnections(), server.close()));
    const address = server.address();
    return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/mcp`;
  }
  const modern = (id: unknown, method: string, params: object = {}) => ({
    jsonrpc: '2.0',
    id,
    method,
    params: {
      ...params,
      _meta: { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {} },
    },
  });

  test('a request says in headers what it is', async () => {
    let headers: IncomingMessage['headers'] = {};
    const url = await serverOf((req, res) => {
      ({ headers } = req);
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.write(
        ': hello\n\ndata: {"jsonrpc":"2.0","method":"notifications/message",\ndata: "params":{}}\n\n',
      );
      res.end('data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n');
    });
    const { say, hears, heard } = client(url);
    await say(modern(1, 'tools/call', { name: 'grüße' }));
    await hears(byId(1));
    expect(headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': '=?base64?Z3LDvMOfZQ==?=',
    });
    expect(headers['mcp-session-id']).toBeUndefined();
    expect(heard.map(({ method }) => method)).toEqual(['notifications/message', undefined]);
  });

  test('a server that has forgotten a session may leave the stream open in which it begins another', async () => {
    let [sessions, forgets] = [0, false];
    const url = await serverOf((req, res) => {
      void json(req).then((message: { id?: unknown; method?: string }) => {
        if (message.method === 'initialize') {
          res.writeHead(200, {
            'Content-Type': 'text/event-stream',
            'Mcp-Session-Id': `s${(sessions += 1)}`,
          });
          res.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result: {} })}\n\n`);
        } else if (forgets && req.headers['mcp-session-id'] === 's1') res.writeHead(404).end();
        else if (message.id === undefined) res.writeHead(req.method === 'GET' ? 405 : 202).end();
        else {
          res.writeHead(200, { 'Content-Type': 'application/json' });
          res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: {} }, null, 2));
        }
      });
    });
    const { greet, say, hears } = client(url);
    await greet();
    await say({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    expect(await hears(byId(1))).toMatchObject({ result: {} });
    forgets = true;
    await say({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
    expect(await hears(byId(2))).toMatchObject({ result: {} });
    expect(sessions).toBe(2);
  });

  test('a request is cancelled by leaving its answer', async () => {
    let [asked, left] = [false, false];
    const url = await serverOf((req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
      asked = true;
      req.socket.on('close', () => (left = true));
    });
    const { say, heard } = client(url);
    await say(modern(1, 'subscriptions/listen'));
    await expect.poll(() => asked, { timeout: 10_000 }).toBe(true);
    await say({ ...modern(1, 'notifications/cancelled', { requestId: 1 }), id: undefined });
    await expect.poll(() => left, { timeout: 10_000 }).toBe(true);
    expect(heard).toEqual([]);
  });

  test.each([
    ['a page', 502, 'text/html', '<html>'],
    ['nothing', 500, 'text/plain', ''],
    ['another answer', 200, 'application/json', '{"jsonrpc":"2.0","id":2,"result":{}}'],
    ['half an event', 200, 'text/event-stream', 'data: {"jsonrpc":"2.0","id":1'],
  ])('a server that says %s is an error to the client', async (_, status, type, body) => {
    const url = await serverOf((_req, res) => void res.writeHead(status, { 'Content-Type': type }).end(body));
    const { say, hears } = client(url);
    await say(modern(1, 'tools/list'));
    expect((await hears(byId(1)))?.error).toMatchObject({ code: -32_000 });
  });
});
