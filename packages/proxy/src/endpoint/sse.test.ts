import { createServer } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import type { Step } from '../call/chain.ts';
import { clientOf, faced } from '../doubles/faces.ts';
import { ask, messagesIn, openStream, postJson, type Stream } from '../doubles/http-client.ts';
import { askModern, modernRequest } from '../doubles/modern.ts';
import { initializeRequest, runningProxy, type RunningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { scriptedServer, type Script } from '../doubles/scripted-server.ts';
import { LEGACY_VERSIONS } from '../message/protocol-version.ts';

const echoing: Script = (message, { say, reply }) => {
  if (message.method !== 'tools/call') return undefined;
  const progressToken = Object(message.params)['_meta']?.progressToken;
  if (progressToken !== undefined)
    say(
      JSON.stringify({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken, progress: 1 },
      }),
    );
  reply(message, { content: [{ type: 'text', text: String(message.params?.['name']) }] });
  return 'handled';
};

const GET = { method: 'GET', headers: { Accept: 'text/event-stream' } };
const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'mine' } };

/** A stream, and where its client posts. */
async function opened(proxy: RunningProxy, headers = {}): Promise<Stream & { readonly endpoint: string }> {
  const stream = await openStream(`${proxy.origin}/sse`, { ...GET, headers: { ...GET.headers, ...headers } });
  const first = await stream.next();
  expect(first?.name).toBe('endpoint');
  return { ...stream, endpoint: first?.data ?? '' };
}

async function connected(proxy: RunningProxy): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  await client.connect(new SSEClientTransport(new URL(proxy.url)));
  return client;
}

describe('a stdio server behind HTTP with SSE', () => {
  test('official clients connect, and each gets its own answers', async () => {
    await using proxy = await runningProxy(scriptedServer(echoing), { mode: 'sse' });
    expect(proxy.url).toBe(`${proxy.origin}/sse`);
    const clients = [await connected(proxy), await connected(proxy)];
    const answers = await Promise.all(
      clients.flatMap((client, at) => [0, 1].map((n) => client.callTool({ name: `${at}-${n}` }))),
    );
    expect(answers.map(({ content }) => Reflect.get(Object(content)[0], 'text'))).toEqual([
      '0-0',
      '0-1',
      '1-0',
      '1-1',
    ]);
    for (const client of clients) await client.close();
  });

  test('a client is asked by the server during its call, and hears of changed tools', async () => {
    const server = scriptedServer((message, { say, reply }) => {
      if (message.method === 'tools/call')
        say(
          '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}',
        );
      const asking = server.received.find(({ method }) => method === 'tools/call');
      if (message.id === 'q' && asking)
        reply(asking, { content: [{ type: 'text', text: JSON.stringify(message['result']) }] });
      return message.method === 'tools/call' || message.id === 'q' ? 'handled' : undefined;
    });
    await using proxy = await runningProxy(server, { mode: 'sse' });
    const client = await connected(proxy);
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'decline' }));
    const changed = new Promise<void>((resolve) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
    });
    expect(await client.callTool({ name: 'x' })).toMatchObject({
      content: [{ text: '{"action":"decline"}' }],
    });
    server.say('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
    await changed;
    await client.close();
  });

  test('a POST is accepted, and its answer comes on the stream of its own client only', async () => {
    await using proxy = await runningProxy(scriptedServer(echoing), { mode: 'sse' });
    const [a, b] = [await opened(proxy), await opened(proxy)];
    for (const { endpoint } of [a, b])
      expect(await postJson(endpoint, initializeRequest(1))).toMatchObject({ status: 202, text: 'Accepted' });
    for (const { next } of [a, b]) expect(JSON.parse((await next())?.data ?? '')).toMatchObject({ id: 1 });
    await postJson(a.endpoint, { ...CALL, params: { ...CALL.params, _meta: { progressToken: 'p' } } });
    await postJson(b.endpoint, { ...CALL, id: '1', params: { name: 'other' } });
    expect((await a.next())?.data).toContain('"progressToken":"p"');
    expect((await a.next())?.data).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"mine"}]}}',
    );
    expect((await b.next())?.data).toContain(
      '"id":"1","result":{"content":[{"type":"text","text":"other"}]}',
    );
    for (const { abort } of [a, b]) abort();
  });

  test.each([
    ['GET', '/messages?session_id=x', 405, 'Method Not Allowed'],
    ['POST', '/sse', 405, 'Method Not Allowed'],
    ['GET', '/mcp', 404, 'Not Found'],
    ['POST', '/messages', 400, 'session_id is required'],
    ['POST', '/messages?session_id=', 400, 'session_id is required'],
    [
      'POST',
      '/messages?session_id=x',
      404,
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}',
    ],
  ])('%s %s is %i', async (method, path, status, text) => {
    await using proxy = await runningProxy(scriptedServer(), { mode: 'sse' });
    const body = method === 'POST' ? { body: JSON.stringify(CALL) } : {};
    const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream' };
    expect(await ask(`${proxy.origin}${path}`, { method, headers, ...body })).toMatchObject({ status, text });
  });

  test('what is no single message is refused', async () => {
    await using proxy = await runningProxy(scriptedServer(), { mode: 'sse' });
    const { endpoint, abort } = await opened(proxy);
    for (const body of ['[]', '{', '{"jsonrpc":"2.0"}'])
      expect((await postJson(endpoint, body)).status).toBe(400);
    abort();
  });

  test('a session ends with its stream, and its calls are cancelled', async () => {
    const server = scriptedServer((message) => (message.method === 'tools/call' ? 'handled' : undefined));
    await using proxy = await runningProxy(server, { mode: 'sse' });
    const { endpoint, abort } = await opened(proxy);
    await postJson(endpoint, initializeRequest(1));
    await postJson(endpoint, CALL);
    await server.heard(({ method }) => method === 'tools/call');
    abort();
    await server.heard(({ method }) => method === 'notifications/cancelled');
    expect((await postJson(endpoint, CALL)).status).toBe(404);
  });

  test('while the server is away a POST is 503, and after its restart clients begin anew', async () => {
    await using proxy = await runningProxy(scriptedServer(), { mode: 'sse' });
    const { endpoint, next } = await opened(proxy);
    proxy.backendEnded();
    expect((await postJson(endpoint, CALL)).status).toBe(503);
    expect((await ask(`${proxy.origin}/health`, { method: 'GET', headers: {} })).text).toContain(
      '"transport":"sse"',
    );
    proxy.backendStarted();
    expect(await next()).toBeUndefined();
  });
});

test.each(['stdio by SSE', 'SSE', 'relayed SSE'] as const)(
  'after a restart of its server a client begins anew, once, and nothing is done twice: %s',
  async (face) => {
    await using it = await faced(face);
    const call = JSON.stringify(CALL);
    const client = await clientOf(it);
    expect((await client.send(call)).text).toContain('"result"');
    it.restart();
    const late = await postJson(client.url, CALL);
    expect(late.status).toBe(404);
    if (face !== 'relayed SSE')
      expect(JSON.parse(late.text)).toMatchObject({ error: { code: -32001, message: 'Session not found' } });
    const again = await clientOf(it);
    expect((await again.send(call)).text).toContain('"result"');
    expect(it.server.received.filter(({ method }) => method === 'tools/call')).toHaveLength(2);
    again.leave();
  },
);

describe('where a client is told to post', () => {
  test.each([
    [{}, {}, 'http://HOST/messages'],
    [
      {},
      { 'X-Forwarded-Host': 'a.test', 'X-Forwarded-Prefix': '/p', 'X-Forwarded-Proto': 'https' },
      'http://HOST/messages',
    ],
    [{ endpointPrefix: '/own' }, { 'X-Forwarded-Prefix': '/p' }, 'http://HOST/own/messages'],
    [{ endpointPrefix: '/own/sse' }, {}, 'http://HOST/own/messages'],
    [{ trustProxyHeaders: true }, { 'X-Forwarded-Prefix': 'p/' }, 'http://HOST/p/messages'],
    [
      { trustProxyHeaders: true },
      { 'X-Forwarded-Host': 'a.test', 'X-Forwarded-Port': '8443', 'X-Forwarded-Proto': 'https' },
      'https://a.test:8443/messages',
    ],
    [
      { trustProxyHeaders: true },
      { 'X-Forwarded-Host': 'a.test:1', 'X-Forwarded-Port': '2' },
      'http://a.test:1/messages',
    ],
    [
      { trustProxyHeaders: true },
      { 'X-Forwarded-Host': 'a.test/evil', 'X-Forwarded-Prefix': '/../x' },
      'http://HOST/messages',
    ],
  ])('%j with %j', async (options, headers, expected) => {
    await using proxy = await runningProxy(scriptedServer(), { mode: 'sse', ...options });
    const { endpoint, abort } = await opened(proxy, headers);
    abort();
    expect(endpoint.split('?')[0]).toBe(expected.replace('HOST', `127.0.0.1:${proxy.port}`));
    expect(endpoint).toMatch(/\?session_id=[0-9a-f-]{36}$/);
  });

  test.each([
    ['/notes', {}, ''],
    ['/sse', {}, ''],
    ['/messages', {}, ''],
    ['/sse', { endpointPrefix: '/own/sse' }, '/own'],
  ])('behind another entrance %s stands before the path, with %j', async (name, options, before) => {
    await using proxy = await runningProxy(scriptedServer(), { mode: 'sse', ...options });
    const door = createServer();
    const port = await new Promise<number>((resolve) => {
      door.listen(0, '127.0.0.1', () => resolve(Number(Reflect.get(Object(door.address()), 'port'))));
    });
    const serve = proxy.behind({ host: '127.0.0.1', port, prefix: name });
    door.on('request', (req, res) =>
      serve(req, res, { authority: undefined, target: (req.url ?? '').slice(name.length) }),
    );
    const origin = `http://127.0.0.1:${port}`;
    const stream = await openStream(`${origin}${name}/sse`, GET);
    const endpoint = (await stream.next())?.data ?? '';
    expect(endpoint.split('=')[0]).toBe(`${origin}${before}${name}/messages?session_id`);
    const post = `${origin}${endpoint.slice(`${origin}${before}`.length)}`;
    expect((await postJson(post, initializeRequest(1))).status).toBe(202);
    stream.abort();
    door.closeAllConnections();
    await new Promise((resolve) => door.close(resolve));
  });
});

describe.each(['in front of stdio', 'in front of itself', 'in front of itself, looked into'])(
  '%s',
  (where) => {
    test('a modern client hears which revisions there are, and the server nothing', async () => {
      await using http = await scriptedHttpServer('sse');
      const server = where === 'in front of stdio' ? scriptedServer() : http;
      const inside: Step = (_call, next) => next();
      const steps = where.endsWith('looked into') ? { authorization: inside } : {};
      await using proxy = await runningProxy(server, { mode: 'sse', steps });
      for (const path of ['/sse', '/messages?session_id=x']) {
        const refused = await askModern(`${proxy.origin}${path}`, modernRequest('server/discover'));
        expect([refused.status, messagesIn(refused)]).toMatchObject([
          400,
          [{ id: 1, error: { code: -32022, data: { supported: LEGACY_VERSIONS, requested: '2026-07-28' } } }],
        ]);
      }
      expect(server.received).toEqual([]);
    });
  },
);
