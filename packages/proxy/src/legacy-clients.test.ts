import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { messagesIn, openStream, postJson } from './doubles/http-client.ts';
import { askModern, DISCOVERED, modernRequest, modernScript } from './doubles/modern.ts';
import { initializeRequest, newSession, runningProxy } from './doubles/running-proxy.ts';
import { isCall } from './doubles/started-mux.ts';
import { scriptedHttpServer, type ScriptedHttpServer } from './doubles/scripted-http-server.ts';
import { scriptedServer, type Script, type ScriptedServer } from './doubles/scripted-server.ts';
import type { Step } from './call/chain.ts';
import { META } from './message/envelope.ts';
import { readMessage } from './message/json-rpc.ts';

type Server = Pick<ScriptedServer, 'received' | 'heard' | 'say'> &
  AsyncDisposable & { readonly backend: Parameters<typeof runningProxy>[0]['backend'] };

const ways = [
  [
    'stdio',
    async (script?: Script): Promise<Server> => ({
      ...scriptedServer(script),
      async [Symbol.asyncDispose]() {},
    }),
  ],
  ['streamable HTTP', (script?: Script): Promise<Server> => scriptedHttpServer('http', script)],
] as const;

async function connected(url: string): Promise<ClientV1 & AsyncDisposable> {
  const client = new ClientV1({ name: 'old', version: '1' }, { capabilities: { elicitation: {} } });
  await client.connect(new TransportV1(new URL(url)));
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

const text = (said: unknown): object => ({
  resultType: 'complete',
  content: [{ type: 'text', text: JSON.stringify(said) }],
});

test.each(ways)('a legacy client uses a modern server over %s', async (_way, open) => {
  await using server = await open(
    modernScript((message, { reply }) => {
      if (!isCall(message)) return undefined;
      reply(message, text(message.params?.['arguments']));
      return 'handled';
    }),
  );
  await using proxy = await runningProxy(server);
  await using client = await connected(proxy.url);
  expect(client.getServerVersion()).toEqual({ name: 'modern', version: '2.0.0' });
  expect(client.getInstructions()).toBe('be brief');
  expect(await client.callTool({ name: 'a', arguments: { n: 1 } })).toEqual({
    content: [{ type: 'text', text: '{"n":1}' }],
  });
  const called = await server.heard(isCall);
  expect(called.params?.['_meta']).toMatchObject({
    [META.version]: '2026-07-28',
    [META.capabilities]: { elicitation: { form: {} } },
  });
});

test.each(ways)('what a modern server over %s requires is asked of the client', async (_way, open) => {
  await using server = await open(
    modernScript((message, { reply }) => {
      if (!isCall(message)) return undefined;
      const { inputResponses, requestState } = Object(message.params);
      if (inputResponses === undefined) {
        const ask = {
          method: 'elicitation/create',
          params: { message: 'who?', requestedSchema: { type: 'object', properties: {} } },
        };
        reply(message, { resultType: 'input_required', inputRequests: { who: ask }, requestState: 's' });
      } else reply(message, text({ inputResponses, requestState }));
      return 'handled';
    }),
  );
  await using proxy = await runningProxy(server);
  await using client = await connected(proxy.url);
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'me' } }));
  expect(await client.callTool({ name: 'a' })).toEqual({
    content: [
      {
        type: 'text',
        text: JSON.stringify({
          inputResponses: { who: { action: 'accept', content: { name: 'me' } } },
          requestState: 's',
        }),
      },
    ],
  });
  const [first, second] = server.received.filter(isCall);
  expect(second?.id).not.toEqual(first?.id);
});

test.each(ways)('changes of a modern server over %s reach the sessions', async (_way, open) => {
  await using server = await open(modernScript());
  await using proxy = await runningProxy(server);
  await using client = await connected(proxy.url);
  const heard: unknown[] = [];
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.push('tools'));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.push(params));
  await client.subscribeResource({ uri: 'a:b' });
  const isListen = ({ method, params }: { method?: string; params?: object }): boolean =>
    method === 'subscriptions/listen' && JSON.stringify(params).includes('a:b');
  const { id } = await server.heard(isListen);
  const tell = (method: string, params: object): void =>
    server.say(
      JSON.stringify({ jsonrpc: '2.0', method, params: { ...params, _meta: { [META.subscriptionId]: id } } }),
    );
  await expect
    .poll(() => {
      tell('notifications/tools/list_changed', {});
      tell('notifications/resources/updated', { uri: 'a:b' });
      return heard;
    })
    .toEqual(expect.arrayContaining(['tools', { uri: 'a:b', _meta: {} }]));
});

test.each(ways)('a call that is cancelled ends at a modern server over %s too', async (_way, open) => {
  await using server = await open(modernScript((message) => (isCall(message) ? 'handled' : undefined)));
  await using proxy = await runningProxy(server);
  await using client = await connected(proxy.url);
  const ending = new AbortController();
  const calling = client.callTool({ name: 'a' }, undefined, { signal: ending.signal });
  await server.heard(isCall);
  ending.abort();
  await expect(calling).rejects.toThrow();
  if (_way === 'stdio') await server.heard(({ method }) => method === 'notifications/cancelled');
});

test('a server that refuses a version, and is no modern one, goes on being relayed', async () => {
  const refusal = { code: -32022, message: 'not this one', data: { supported: ['2024-11-05'] } };
  await using server = await scriptedHttpServer('http', (message, { say }) => {
    if (Object(message.params).protocolVersion !== '2025-06-18') return undefined;
    say(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: refusal }));
    return 'handled';
  });
  await using proxy = await runningProxy(server);
  const session = await newSession(proxy.url);
  const refused = await postJson(proxy.url, initializeRequest(1, '2025-06-18'));
  expect([refused.status, messagesIn(refused)]).toMatchObject([400, [{ error: refusal }]]);
  const call = { jsonrpc: '2.0', id: 2, method: 'x/y', params: {} };
  expect(messagesIn(await postJson(proxy.url, call, session)).at(-1)).toMatchObject({ id: 2, result: {} });
});

test.each([
  ['within a session', { jsonrpc: '2.0', id: 2, method: 'x/bad' }, 1],
  // The scripted server begins a session also where it refuses.
  ['of a handshake', initializeRequest(2, '2025-06-18'), 3],
])('a refusal %s makes no modern server of one of both families', async (_what, bad, left) => {
  const refusal = { code: -32602, message: 'not like this' };
  await using server = await scriptedHttpServer('http', (message, { say, reply }) => {
    if (message.method === 'server/discover') reply(message, DISCOVERED);
    else if (message.method === 'x/bad' || Object(message.params).protocolVersion === '2025-06-18')
      say(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: refusal }));
    else return undefined;
    return 'handled';
  });
  await using proxy = await runningProxy(server);
  const session = await newSession(proxy.url);
  for (let round = 0; round < 2; round += 1) {
    const refused = await postJson(proxy.url, bad, session);
    expect([refused.status, messagesIn(refused)]).toEqual([400, [{ jsonrpc: '2.0', id: 2, error: refusal }]]);
  }
  const answer = await postJson(proxy.url, { jsonrpc: '2.0', id: 3, method: 'x/y' }, session);
  expect(messagesIn(answer).at(-1)).toMatchObject({ id: 3, result: {} });
  const modern = await askModern(proxy.url, modernRequest('x/y', { n: 1 }));
  expect(messagesIn(modern)).toMatchObject([{ id: 1, result: { echo: { n: 1 } } }]);
  await expect.poll(() => server.sessions).toBe(left);
});

test("a refusal within a session is its client's, and no session of a legacy server ends by it", async () => {
  const refusal = { code: -32022, message: 'not like this' };
  await using server = await scriptedHttpServer('http', (message, { say }) => {
    if (message.method !== 'x/bad') return undefined;
    say(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: refusal }));
    return 'handled';
  });
  await using proxy = await runningProxy(server);
  const [mine, other] = [await newSession(proxy.url), await newSession(proxy.url)];
  const bad = await postJson(proxy.url, { jsonrpc: '2.0', id: 2, method: 'x/bad' }, mine);
  expect([bad.status, messagesIn(bad)]).toEqual([400, [{ jsonrpc: '2.0', id: 2, error: refusal }]]);
  for (const session of [mine, other]) {
    const answer = await postJson(proxy.url, { jsonrpc: '2.0', id: 3, method: 'x/y' }, session);
    expect(messagesIn(answer).at(-1)).toMatchObject({ id: 3, result: {} });
  }
});

test('a modern server cannot ask its clients but by results', async () => {
  const server = scriptedServer(
    modernScript((message, { say, reply }) => {
      if (!isCall(message)) return undefined;
      say('{"jsonrpc":"2.0","id":"q","method":"roots/list"}');
      reply(message, text('done'));
      return 'handled';
    }),
  );
  await using proxy = await runningProxy(server);
  const answer = await askModern(proxy.url, modernRequest('tools/call', { name: 'a' }));
  expect(messagesIn(answer)).toHaveLength(1);
});

test('what a modern server says before it refuses a call is not kept until the end of it', async () => {
  const server = createServer((req, res) => {
    void readText(req).then((body) => {
      const { id, method } = JSON.parse(body);
      if (method === 'tools/call') {
        res.writeHead(400, { 'Content-Type': 'text/event-stream' });
        const said = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: 1 } };
        res.write(`data: ${JSON.stringify(said)}\n\n`);
      } else {
        const isModern = req.headers['mcp-protocol-version'] === '2026-07-28';
        const error = { code: -32022, message: 'no', data: { supported: ['2026-07-28'] } };
        const said = isModern ? { result: DISCOVERED } : { error };
        res.writeHead(isModern ? 200 : 400, { 'Content-Type': 'application/json' });
        res.end(JSON.stringify({ jsonrpc: '2.0', id, ...said }));
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const target = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await using proxy = await runningProxy({ backend: { kind: 'http', target } });
  const session = await newSession(proxy.url);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } });
  const both = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const stream = await openStream(proxy.url, { body, headers: { ...both, ...session } });
  // The first one only tells an id.
  expect((await stream.next())?.data).toBe('');
  expect((await stream.next())?.data).toContain('notifications/message');
  stream.abort();
  server.closeAllConnections();
  server.close();
});

describe('a modern server over HTTP that wants arguments repeated in headers', () => {
  const tools = [
    { name: 'plain', inputSchema: { type: 'object' } },
    {
      name: 'deploy',
      inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
    },
  ];
  const strict = async (): Promise<ScriptedHttpServer> => {
    const server: ScriptedHttpServer = await scriptedHttpServer(
      'http',
      modernScript((message, { reply, say }) => {
        const { method, params, id } = message;
        if (method === 'tools/list') {
          const isLast = params?.['cursor'] === 'more';
          const page = { tools: isLast ? tools.slice(1) : tools.slice(0, 1) };
          reply(message, { resultType: 'complete', ...page, ...(isLast ? {} : { nextCursor: 'more' }) });
        } else if (method !== 'tools/call') return undefined;
        else if (Object(params?.['arguments']).region === server.headers.at(-1)?.['mcp-param-region'])
          reply(message, text('deployed'));
        else say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32020, message: 'no match' } }));
        return 'handled';
      }),
    );
    return server;
  };
  const deploy = { name: 'deploy', arguments: { region: 'us' } };
  const deployed = { content: [{ type: 'text', text: '"deployed"' }] };

  test('has them from legacy clients, listed or not', async () => {
    await using server = await strict();
    await using proxy = await runningProxy(server);
    await using client = await connected(proxy.url);
    expect(await client.callTool(deploy)).toEqual(deployed);
    const calls = () => server.received.filter(isCall).length;
    expect(calls()).toBe(2);
    expect(await client.callTool(deploy)).toEqual(deployed);
    expect(calls()).toBe(3);
    await using other = await connected(proxy.url);
    await other.listTools();
    await other.listTools({ cursor: 'more' });
    expect(await other.callTool(deploy)).toEqual(deployed);
    expect(calls()).toBe(4);
  });

  test.each(['at once', 'when another has gone through'])('has them of a call that it refuses %s', async (when) => {
    const refusals: (() => void)[] = [];
    const server: ScriptedHttpServer = await scriptedHttpServer(
      'http',
      modernScript((message, { reply, say }) => {
        const { method, id } = message;
        if (method === 'tools/list') reply(message, { resultType: 'complete', tools });
        else if (method !== 'tools/call') return undefined;
        else if (server.headers.at(-1)?.['mcp-param-region'] !== undefined) {
          reply(message, text('deployed'));
          refusals.pop()?.();
        } else {
          refusals.push(() => say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32020, message: 'no match' } })));
          if (refusals.length === 2) for (const refuse of refusals.splice(when === 'at once' ? 0 : 1)) refuse();
        }
        return 'handled';
      }),
    );
    await using _server = server;
    await using proxy = await runningProxy(server);
    await using client = await connected(proxy.url);
    const calls = [client.callTool(deploy), client.callTool(deploy)];
    expect(await Promise.all(calls)).toEqual([deployed, deployed]);
  }); // prettier-ignore

  test('is not asked for its tools with every call that it refuses', async () => {
    await using server = await strict();
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    const params = { name: 'plain', arguments: { region: 'us' } };
    for (const id of [1, 2, 3]) {
      const refused = await postJson(
        proxy.url,
        { jsonrpc: '2.0', id, method: 'tools/call', params },
        session,
      );
      expect(messagesIn(refused).at(-1)).toMatchObject({ id, error: { code: -32020 } });
    }
    expect(server.received.filter(({ method }) => method === 'tools/list')).toHaveLength(2);
  });

  test('refuses a modern client that does not send them', async () => {
    await using server = await strict();
    await using proxy = await runningProxy(server, {
      steps: { 'mutating-webhook': (_call, next) => next() },
    });
    const refused = await askModern(proxy.url, modernRequest('tools/call', deploy));
    expect([refused.status, messagesIn(refused)]).toMatchObject([400, [{ error: { code: -32020 } }]]);
    const { body, headers } = modernRequest('tools/call', deploy);
    const sent = { ...headers, 'Mcp-Param-Region': 'us' };
    expect(messagesIn(await askModern(proxy.url, { body, headers: sent }))).toMatchObject([
      { result: deployed },
    ]);
  });

  test('has those of the call that a webhook has made of another', async () => {
    await using server = await strict();
    const change: Step = (call, next) => {
      const { incoming } = call;
      const changed = incoming && readMessage(incoming.message.text.replace('"eu"', '"us"'));
      if (incoming && typeof changed === 'object') call.incoming = { ...incoming, message: changed };
      call.isChanged = true;
      return next();
    };
    await using proxy = await runningProxy(server, { steps: { 'mutating-webhook': change } });
    const { body, headers } = modernRequest('tools/call', { ...deploy, arguments: { region: 'eu' } });
    const sent = { ...headers, 'Mcp-Param-Region': 'eu' };
    expect(messagesIn(await askModern(proxy.url, { body, headers: sent }))).toMatchObject([
      { result: deployed },
    ]);
  });
});
