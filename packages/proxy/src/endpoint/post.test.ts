import { describe, expect, test } from 'vitest';
import { ask, messagesIn, postJson } from '../doubles/http-client.ts';
import { initializeRequest, newSession, runningProxy } from '../doubles/running-proxy.ts';
import { scriptedServer } from '../doubles/scripted-server.ts';

const list = { jsonrpc: '2.0', id: 'a', method: 'tools/list' };
const modernMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

describe('the POST decision table', () => {
  test.each([
    ['a body over the limit', ' '.repeat(5000), {}, 413, undefined],
    ['a batch', '[]', {}, 400, { error: { code: -32600 } }],
    [
      'a batch under another media type',
      ' \n[1]',
      { 'Content-Type': 'text/plain' },
      400,
      { error: { code: -32600 } },
    ],
    ['bad JSON', '{"jsonrpc":', {}, 400, { error: { code: -32700, message: 'Parse error' } }],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 400, { error: { code: -32700 } }],
    ['JSON that is not JSON-RPC', '{"id":1}', {}, 400, { error: { code: -32600 } }],
    ['a null id', '{"jsonrpc":"2.0","id":null,"method":"x"}', {}, 400, { error: { code: -32600 } }],
    [
      'a doubled member',
      '{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}',
      {},
      400,
      { error: { code: -32600 } },
    ],
    [
      'a modern header without a body version',
      JSON.stringify(list),
      { 'MCP-Protocol-Version': '2026-07-28' },
      400,
      { id: 'a', error: { code: -32602 } },
    ],
    [
      'an unknown protocol version',
      JSON.stringify(list),
      { 'MCP-Protocol-Version': '1999-01-01' },
      400,
      { id: 'a', error: { code: -32600 } },
    ],
    [
      'an Accept that admits nothing',
      JSON.stringify(list),
      { Accept: 'text/html' },
      406,
      { error: { code: -32000 } },
    ],
    [
      'an unknown session',
      JSON.stringify(list),
      { 'Mcp-Session-Id': 'nope' },
      404,
      { id: 'a', error: { code: -32001, message: 'Session not found' } },
    ],
    [
      'a notification of an unknown session',
      '{"jsonrpc":"2.0","method":"x"}',
      { 'Mcp-Session-Id': 'nope' },
      404,
      { error: { code: -32001 } },
    ],
    [
      'what the modern revision took away',
      JSON.stringify({ ...list, method: 'ping', params: { _meta: modernMeta } }),
      { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'ping' },
      404,
      { id: 'a', error: { code: -32601 } },
    ],
    [
      'a modern request whose header names another method',
      JSON.stringify({ ...list, params: { _meta: modernMeta } }),
      { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'prompts/list' },
      400,
      { id: 'a', error: { code: -32020, data: { header: 'prompts/list', body: 'tools/list' } } },
    ],
    [
      'a revision that is not known',
      JSON.stringify({
        ...list,
        params: { _meta: { ...modernMeta, 'io.modelcontextprotocol/protocolVersion': 'v999' } },
      }),
      { 'MCP-Protocol-Version': 'v999', 'Mcp-Method': 'tools/list' },
      400,
      { id: 'a', error: { code: -32022, data: { supported: ['2026-07-28'], requested: 'v999' } } },
    ],
    [
      'a response of a modern client',
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      { 'MCP-Protocol-Version': '2026-07-28' },
      400,
      { error: { code: -32600 } },
    ],
    [
      'a subscription without a session',
      '{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"a:b"}}',
      {},
      400,
      { id: 7, error: { code: -32600 } },
    ],
  ])('%s', async (...[, body, headers, status, expected]) => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server, { bodyLimitBytes: 4096 });
    const answer = await ask(proxy.url, {
      body,
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...headers,
      },
    });
    expect(answer.status).toBe(status);
    if (expected === undefined) expect(answer.text).toBe('Request Entity Too Large');
    else {
      expect(JSON.parse(answer.text)).toMatchObject(expected);
      expect('id' in JSON.parse(answer.text)).toBe('id' in expected || answer.text.includes('"id":"a"'));
    }
    expect(server.received).toEqual([]);
  });

  test('a body that grows over the limit without a declared length', async () => {
    await using proxy = await runningProxy(scriptedServer(), { bodyLimitBytes: 100 });
    const answer = await ask(proxy.url, {
      body: 'x'.repeat(5000),
      headers: { 'Transfer-Encoding': 'chunked' },
    });
    expect(answer.status).toBe(413);
  });

  test('a notification is forwarded and answered 202 without a body', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    const answer = await postJson(
      proxy.url,
      { jsonrpc: '2.0', method: 'notifications/x', params: { a: 1 } },
      session,
    );
    expect([answer.status, answer.text]).toEqual([202, '']);
    expect(await server.heard(({ method }) => method === 'notifications/x')).toMatchObject({
      params: { a: 1 },
    });
  });

  test('an answer that nobody asked for is taken with 202 and goes nowhere', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    const answer = await postJson(proxy.url, { jsonrpc: '2.0', id: 5, result: {} }, session);
    expect(answer.status).toBe(202);
    expect(server.received.map(({ method }) => method)).toEqual(['initialize', 'notifications/initialized']);
  });

  test('ping is answered by the proxy', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const answer = await postJson(proxy.url, { jsonrpc: '2.0', id: 1.5, method: 'ping' });
    expect(messagesIn(answer)).toEqual([{ jsonrpc: '2.0', id: 1.5, result: {} }]);
    expect(server.received).toEqual([]);
  });

  test('line breaks between tokens do not break the line protocol on either side', async () => {
    const server = scriptedServer((message, { say }) => {
      if (message.method !== 'tools/list') return undefined;
      say(`{"jsonrpc":"2.0",\r"id":${String(message.id)},"result":{}}`);
      return 'handled';
    });
    await using proxy = await runningProxy(server);
    const answer = await postJson(proxy.url, JSON.stringify(list, null, 2).replaceAll('\n', '\r\n'));
    expect(server.lines).toHaveLength(1);
    expect(answer.text).not.toContain('\r');
    expect(messagesIn(answer)).toEqual([{ jsonrpc: '2.0', id: 'a', result: {} }]);
  });

  test('a request without a session is served', async () => {
    await using proxy = await runningProxy(scriptedServer());
    expect(messagesIn(await postJson(proxy.url, list))).toMatchObject([{ id: 'a', result: { echo: null } }]);
  });

  test.each([
    ['application/json, text/event-stream', 'text/event-stream'],
    ['text/event-stream', 'text/event-stream'],
    ['application/json', 'application/json'],
    ['*/*', 'application/json'],
    ['text/event-stream;q=0, application/json', 'application/json'],
  ])('Accept "%s" is answered with %s', async (accept, type) => {
    await using proxy = await runningProxy(scriptedServer());
    const answer = await postJson(proxy.url, list, { Accept: accept });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe(type);
  });

  test('an error of the server is HTTP 200 for a legacy client', async () => {
    const server = scriptedServer(({ id, method }, { say }) => {
      if (method !== 'tools/list') return undefined;
      say(
        `{"jsonrpc":"2.0","id":${String(id)},"error":{"code":-32601,"message":"no","data":12345678901234567890}}`,
      );
      return 'handled';
    });
    await using proxy = await runningProxy(server);
    const answer = await postJson(proxy.url, list, { Accept: 'application/json' });
    expect(answer.status).toBe(200);
    expect(answer.text).toBe(
      '{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no","data":12345678901234567890}}',
    );
  });
});

describe('initialize', () => {
  test('mints a session, and an unknown or known session header does not matter', async () => {
    await using proxy = await runningProxy(scriptedServer());
    const first = await newSession(proxy.url);
    for (const header of [{ 'Mcp-Session-Id': 'mine' }, first]) {
      const again = await postJson(proxy.url, initializeRequest(), header);
      expect(again.headers['mcp-session-id']).toMatch(/^[0-9a-f-]{36}$/u);
      expect(again.headers['mcp-session-id']).not.toBe(header['Mcp-Session-Id']);
    }
    expect((await postJson(proxy.url, list, first)).status).toBe(200);
  });

  test('reaches the server once, however many clients come at the same time', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    const answers = await Promise.all(
      [1, '1', 'x', 1, -0.5].map((id) => postJson(proxy.url, initializeRequest(id))),
    );
    expect(answers.flatMap(messagesIn).map((message) => Reflect.get(Object(message), 'id'))).toEqual([
      1,
      '1',
      'x',
      1,
      -0.5,
    ]);
    expect(new Set(answers.map(({ headers }) => headers['mcp-session-id'])).size).toBe(5);
    expect(server.received.filter(({ method }) => method === 'initialize')).toHaveLength(1);
  });

  test('is tried again by the next client after it failed', async () => {
    let tries = 0;
    const server = scriptedServer(({ id, method }, { say }) => {
      if (method !== 'initialize' || (tries += 1) > 1) return undefined;
      say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: 'not yet' } }));
      return 'handled';
    });
    await using proxy = await runningProxy(server);
    const failed = await postJson(proxy.url, initializeRequest(9));
    expect(messagesIn(failed)).toMatchObject([{ id: 9, error: { message: 'not yet' } }]);
    expect(failed.headers['mcp-session-id']).toBeUndefined();
    expect((await postJson(proxy.url, initializeRequest(10))).headers['mcp-session-id']).toBeDefined();
  });

  test.each([
    ['2025-03-26', '2025-03-26'],
    ['2026-07-28', '2025-11-25'],
    ['1999-01-01', '2025-11-25'],
  ])('a later client that asks for %s gets %s', async (wanted, got) => {
    await using proxy = await runningProxy(scriptedServer());
    await newSession(proxy.url);
    const answer = await postJson(proxy.url, initializeRequest(2, wanted));
    expect(messagesIn(answer)).toMatchObject([
      { id: 2, result: { protocolVersion: got, serverInfo: { name: 'scripted' } } },
    ]);
  });

  test('announces the client to the server once', async () => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server);
    await newSession(proxy.url);
    await newSession(proxy.url);
    expect(server.received.filter(({ method }) => method === 'notifications/initialized')).toHaveLength(1);
  });
});
