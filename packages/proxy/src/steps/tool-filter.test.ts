import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ask, messagesIn, openStream, postJson } from '../doubles/http-client.ts';
import { newSession, runningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { scriptedServer } from '../doubles/scripted-server.ts';
import { newCall, throughHooks } from '../call/call.ts';
import { compose } from '../call/chain.ts';
import { eraOf } from '../message/era.ts';
import { readMessage, type Message } from '../message/json-rpc.ts';
import { toolCallFilter, toolFilter } from './tool-filter.ts';
import { toolView } from './tool-view.ts';

const view = toolView({
  filter: ['look', 'é', 'plain'],
  overrides: { read: { name: 'look' }, write: { name: 'é' } },
});

function read(text: string): Message {
  const message = readMessage(text);
  if (typeof message === 'string') throw new TypeError(message);
  return message;
}

/** What a request becomes: the body that went on, or the status that answered it. */
async function through(body: string, headers: Readonly<Record<string, string>> = {}) {
  const req = Object.assign(new IncomingMessage(new Socket()), { method: 'POST', headers: { ...headers } });
  const res = new ServerResponse(req);
  const call = newCall(req, res, { authority: undefined, target: '/mcp' });
  call.readBody = () => Promise.resolve(Buffer.from(body));
  let passed: string | undefined;
  await compose([
    { run: toolFilter(view) },
    { run: toolCallFilter(view) },
    { run: async () => void (passed = (await call.readBody()).toString()) },
  ])(call);
  return { call, passed, status: passed === undefined ? res.statusCode : undefined };
}

const callOf = (params: string, id = '"id":1,'): string =>
  `{"jsonrpc":"2.0",${id}"method":"tools/call","params":${params}}`;

describe('a call of a tool', () => {
  test.each([
    ['under its other name', '{"_meta":{"x":1.0},"name":"look","arguments":{"name":"look","n":9007199254740993}}', '{"_meta":{"x":1.0},"name":"read","arguments":{"name":"look","n":9007199254740993}}'],
    ['under its own name', '{"name":"plain"}', '{"name":"plain"}'],
    ['with escapes in its name', '{"n\\u0061me":"l\\u006fok"}', '{"n\\u0061me":"read"}'],
  ])('%s reaches the server under its own', async (_name, params, expected) => {
    expect((await through(callOf(params))).passed).toBe(callOf(expected));
  }); // prettier-ignore

  test.each([
    ['that is hidden', '{"name":"other"}', 200],
    ['by the name that it has lost', '{"name":"read"}', 200],
    ['without a name', '{}', 400],
    ['with an empty name', '{"name":""}', 400],
    ['with a name that is no text', '{"name":["look"]}', 400],
    ['with two names', '{"name":"look","name":"other"}', 400],
    ['without parameters', 'null', 400],
  ])('%s is refused', async (_name, params, status) => {
    expect(await through(callOf(params))).toMatchObject({ passed: undefined, status });
  });

  test('that is a notification is refused, whatever tool it names wrongly', async () => {
    expect(await through(callOf('{"name":"other"}', ''))).toMatchObject({ passed: undefined, status: 400 });
  });

  test.each([
    '[]',
    'no json',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"result":{}}',
  ])('is not what this is, so it goes on: %s', async (body) =>
    expect((await through(body)).passed).toBe(body),
  );

  test.each([
    ['look', 'look'],
    ['é', `=?base64?${Buffer.from('é').toString('base64')}?=`],
  ])('of a modern client says the real name of %s in its header too', async (name, header) => {
    const meta =
      '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': header };
    const { call, passed = '' } = await through(callOf(`{"name":"${name}","_meta":${meta}}`), headers);
    expect(eraOf(call.req.headers, read(passed))).toEqual({ era: 'modern' });
  });
});

test('only answers to tools/list are changed', async () => {
  const { call } = await through('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
  const list = read(
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read"},{"name":"x"}],"nextCursor":"c"}}',
  );
  const shown = (method: string, message = list): string | undefined =>
    throughHooks(call.replyHooks, { message, request: { id: '1', method } })?.text;
  expect(shown('tools/list')).toBe(
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"look"}],"nextCursor":"c"}}',
  );
  expect(shown('tools/call')).toBe(list.text);
  const changed = read('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
  expect(throughHooks(call.replyHooks, { message: changed, request: undefined })).toBe(changed);
});

describe('a call of a hidden tool is answered as its transport answers', () => {
  const parts = { tools: { filter: ['b'] } };
  const call = { jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'a' } };
  const notFound = { jsonrpc: '2.0', id: 'x', error: { code: -32_602, message: 'tool not found' } };

  test.each([
    ['JSON where that is admitted', 'application/json, text/event-stream', 'application/json'],
    ['JSON where nothing is said', '*/*', 'application/json'],
    ['an event where only a stream is', 'text/event-stream', 'text/event-stream'],
  ])('%s', async (_name, accept, type) => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server, { parts });
    const answer = await postJson(proxy.url, call, { ...(await newSession(proxy.url)), Accept: accept });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, type]);
    expect(messagesIn(answer)).toEqual([notFound]);
    expect(server.received.some(({ method }) => method === 'tools/call')).toBe(false);
  });

  test.each([
    ['params', '"name":"b","Name":"a"', -32_602],
    ['the message', '"name":"b"},"Params":{"name":"a"', -32_600],
  ])('never with what servers may take for another name in %s', async (_name, params, code) => {
    const server = scriptedServer();
    await using proxy = await runningProxy(server, { parts });
    const body = `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{${params}}}`;
    const headers = { ...(await newSession(proxy.url)), 'Content-Type': 'application/json' };
    const answer = await ask(proxy.url, { method: 'POST', headers, body });
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, code]);
    expect(server.received.some(({ method }) => method === 'tools/call')).toBe(false);
  });

  test('not at all where neither is', async () => {
    await using proxy = await runningProxy(scriptedServer(), { parts });
    expect((await postJson(proxy.url, call, { Accept: 'text/html' })).status).toBe(406);
  });

  test.each(['stdio', 'sse'])('on the stream of HTTP with SSE, to a server of %s', async (kind) => {
    await using http = await scriptedHttpServer('sse');
    const server = kind === 'sse' ? http : scriptedServer();
    await using proxy = await runningProxy(server, { parts, mode: 'sse' });
    const stream = await openStream(proxy.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
    const endpoint = (await stream.next())?.data ?? '';
    expect((await postJson(endpoint, call)).status).toBe(202);
    expect(JSON.parse((await stream.next())?.data ?? '')).toEqual(notFound);
    const stranger = await postJson(`${proxy.origin}/messages?session_id=y`, call);
    expect([stranger.status, JSON.parse(stranger.text).error.code]).toEqual([404, -32_001]);
    stream.abort();
    expect(server.received.some(({ method }) => method === 'tools/call')).toBe(false);
  });
});

test('a modern client of a legacy server sees and calls what was chosen, too', async () => {
  const server = scriptedServer((message, { reply }) => {
    if (message.method !== 'tools/list') return undefined;
    reply(message, { tools: [{ name: 'read' }, { name: 'x' }] });
    return 'handled';
  });
  const tools = { filter: ['look'], overrides: { read: { name: 'look' } } };
  await using proxy = await runningProxy(server, { parts: { tools } });
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const ask = async (method: string, params: object, more = {}) => {
    const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...more };
    const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } };
    return messagesIn(await postJson(proxy.url, message, headers))[0];
  };
  expect(await ask('tools/list', {})).toMatchObject({ result: { tools: [{ name: 'look' }] } });
  const call = (name: string) => ask('tools/call', { name }, { 'Mcp-Name': name });
  expect(await call('look')).toMatchObject({ result: { echo: { name: 'read' } } });
  for (const name of ['read', 'x']) expect(await call(name)).toMatchObject({ error: { code: -32_602 } });
});
