import { describe, expect, test } from 'vitest';
import { messagesIn, postJson } from './doubles/http-client.ts';
import { askModern, DISCOVERED, modernRequest, modernScript, nextOf, streamOf } from './doubles/modern.ts';
import { newSession, runningProxy } from './doubles/running-proxy.ts';
import { scriptedHttpServer } from './doubles/scripted-http-server.ts';
import { isCall } from './doubles/started-mux.ts';
import {
  scriptedServer,
  type Received,
  type Script,
  type ScriptedServer,
} from './doubles/scripted-server.ts';
import { META } from './message/envelope.ts';

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

const answerOf = async (url: string, ...request: Parameters<typeof modernRequest>): Promise<Received> =>
  Object(messagesIn(await askModern(url, modernRequest(...request))).at(-1));

const methods = ({ received }: Server): readonly unknown[] => received.map(({ method }) => method);

describe.each(ways)('a modern client and a modern server over %s', (_way, open) => {
  test('requests and answers pass as they are', async () => {
    await using server = await open(modernScript());
    await using proxy = await runningProxy(server);
    expect(await answerOf(proxy.url, 'server/discover')).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: DISCOVERED,
    });
    const params = { name: 'a', n: 1 };
    const { result } = await answerOf(proxy.url, 'tools/call', params, { own: true }, 'x');
    expect(result).toMatchObject({ echo: { ...params, _meta: { [META.version]: '2026-07-28', own: true } } });
    expect(methods(server)).not.toContain('initialize');
  });

  test('what is listened to comes under the id of the request, until its client goes', async () => {
    await using server = await open(modernScript());
    await using proxy = await runningProxy(server);
    const listen = modernRequest(
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      {},
      'mine',
    );
    const stream = await streamOf(proxy.url, listen);
    const tag = { [META.subscriptionId]: 'mine' };
    expect(await nextOf(stream)).toMatchObject({
      params: { notifications: { toolsListChanged: true }, _meta: tag },
    });
    const asked = await server.heard(({ method }) => method === 'subscriptions/listen');
    const method = 'notifications/tools/list_changed';
    server.say(
      JSON.stringify({ jsonrpc: '2.0', method, params: { _meta: { [META.subscriptionId]: asked.id } } }),
    );
    expect(await nextOf(stream)).toMatchObject({ method, params: { _meta: tag } });
    stream.abort();
  });

  test('errors have the status that the revision gives them', async () => {
    const failing = (code: number): Script =>
      modernScript((message, { say }) => {
        if (message.method !== 'x/y') return undefined;
        say(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code, message: 'no' } }));
        return 'handled';
      });
    for (const [code, status] of [
      [-32601, 404],
      [-32021, 400],
      [-32602, 200],
    ] as const) {
      await using server = await open(failing(code));
      await using proxy = await runningProxy(server, { steps: { authorization: (_call, next) => next() } });
      expect((await askModern(proxy.url, modernRequest('x/y'))).status).toBe(status);
    }
  });
});

describe.each(ways)('a modern client and a legacy server over %s', (_way, open) => {
  test('the server is discovered from its handshake', async () => {
    await using server = await open();
    await using proxy = await runningProxy(server);
    const { result } = await answerOf(proxy.url, 'server/discover');
    expect(result).toMatchObject({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: { listChanged: true } },
      _meta: { [META.serverInfo]: { name: 'scripted' } },
    });
  });

  test('the server sees nothing of the other revision, and the client gets what its own asks for', async () => {
    await using server = await open();
    await using proxy = await runningProxy(server);
    const big = '{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/list"';
    const { headers, body } = modernRequest(
      'tools/list',
      { cursor: 'c' },
      { own: 1, [META.clientInfo]: { name: 'x' } },
    );
    const text = body.replace('{"jsonrpc":"2.0","id":1,"method":"tools/list"', big);
    const answer = await askModern(proxy.url, { headers, body: text });
    expect(answer.text).toContain(
      '{"jsonrpc":"2.0","id":12345678901234567890,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","echo":{"cursor":"c","_meta":{"own":1}}}}',
    );
    expect(answer.headers['mcp-session-id']).toBeUndefined();
  });

  test('a resource that is not there has the code of its revision', async () => {
    await using server = await open((message, { say }) => {
      if (message.method !== 'resources/read') return undefined;
      say(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32002, message: 'not found' } }));
      return 'handled';
    });
    await using proxy = await runningProxy(server);
    expect(await answerOf(proxy.url, 'resources/read', { uri: 'x:y' })).toMatchObject({
      error: { code: -32602 },
    });
  });

  test('what the server asks comes as a result, and is answered by the next request', async () => {
    await using server = await open((message, { say, reply }) => {
      if (isCall(message)) {
        say('{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?"}}');
        return 'handled';
      }
      const call = server.received.find(isCall);
      if (message.id !== 'q') return undefined;
      if (call !== undefined) reply(call, { said: message['result'] });
      return 'handled';
    });
    await using proxy = await runningProxy(server);
    const able = { [META.capabilities]: { elicitation: {} } };
    const first: Received = await answerOf(proxy.url, 'tools/call', { name: 'a' }, able, 1);
    const { resultType, inputRequests, requestState } = Object(first['result']);
    expect(resultType).toBe('input_required');
    const [[name, question] = ['', {}]] = Object.entries<unknown>(inputRequests);
    expect(question).toEqual({ method: 'elicitation/create', params: { message: 'who?' } });
    const answers = { [name]: { action: 'accept', content: { name: 'me' } } };
    const retry = { name: 'a', inputResponses: answers, requestState };
    const last = await answerOf(proxy.url, 'tools/call', retry, able, 2);
    expect(last).toMatchObject({
      id: 2,
      result: { resultType: 'complete', said: { action: 'accept', content: { name: 'me' } } },
    });
    expect(await answerOf(proxy.url, 'tools/call', retry, able, 3)).toMatchObject({
      error: { code: -32602 },
    });
  });

  test('a client that cannot be asked is not', async () => {
    await using server = await open((message, { say, reply }) => {
      if (isCall(message)) say('{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}');
      const call = server.received.find(isCall);
      if (message.id === 'q' && call !== undefined) reply(call, { heard: message['error'] });
      return isCall(message) || message.id === 'q' ? 'handled' : undefined;
    });
    await using proxy = await runningProxy(server);
    expect(await answerOf(proxy.url, 'tools/call', { name: 'a' })).toMatchObject({
      result: { heard: { code: -32601 } },
    });
  });

  test('answers that are none are refused, and what is left open is asked once more', async () => {
    await using server = await open((message, { say, reply }) => {
      if (isCall(message)) say('{"jsonrpc":"2.0","id":"q","method":"roots/list"}');
      const call = server.received.find(isCall);
      if (message.id === 'q' && call !== undefined) reply(call, { done: true });
      return isCall(message) || message.id === 'q' ? 'handled' : undefined;
    });
    await using proxy = await runningProxy(server);
    const able = { [META.capabilities]: { roots: {} } };
    const asked = async (more: object): Promise<Readonly<Record<string, unknown>>> =>
      Object((await answerOf(proxy.url, 'tools/call', { name: 'a', ...more }, able))['result']);
    const first = await asked({});
    const again = await asked({ requestState: first['requestState'], inputResponses: { other: {} } });
    expect(again).toMatchObject({ resultType: 'input_required', inputRequests: first['inputRequests'] });
    const [name = ''] = Object.keys(Object(again['inputRequests']));
    const last = await asked({
      requestState: again['requestState'],
      inputResponses: { [name]: { roots: [] } },
    });
    expect(last).toMatchObject({ resultType: 'complete', done: true });
  });

  test('a client that goes cancels its call', async () => {
    await using server = await open((message) => (isCall(message) ? 'handled' : undefined));
    await using proxy = await runningProxy(server);
    const request = modernRequest('tools/call', { name: 'a' }, { progressToken: 'p' });
    const streaming = streamOf(proxy.url, request);
    const { id, params } = await server.heard(isCall);
    const token = Object(params?.['_meta']).progressToken;
    server.say(
      JSON.stringify({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: token, progress: 1 },
      }),
    );
    const stream = await streaming;
    expect(await nextOf(stream)).toMatchObject({ params: { progressToken: 'p', progress: 1 } });
    stream.abort();
    const told = await server.heard(({ method }) => method === 'notifications/cancelled');
    expect(told.params).toMatchObject({ requestId: id });
  });

  test('changes and subscribed resources come on the stream that asks for them, and for nobody else', async () => {
    await using server = await open();
    await using proxy = await runningProxy(server);
    const notifications = {
      toolsListChanged: true,
      promptsListChanged: true,
      resourceSubscriptions: ['a:b'],
    };
    const stream = await streamOf(
      proxy.url,
      modernRequest('subscriptions/listen', { notifications }, {}, 'l'),
    );
    const tag = { [META.subscriptionId]: 'l' };
    expect(await nextOf(stream)).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { toolsListChanged: true, resourceSubscriptions: ['a:b'] }, _meta: tag },
    });
    expect(methods(server)).toContain('resources/subscribe');
    server.say('{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}');
    server.say('{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"c:d"}}');
    server.say('{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}');
    expect(await nextOf(stream)).toMatchObject({ params: { uri: 'a:b', _meta: tag } });
    await expect
      .poll(async () => {
        server.say('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
        return (await nextOf(stream)).method;
      })
      .toBe('notifications/tools/list_changed');
    stream.abort();
    await server.heard(({ method }) => method === 'resources/unsubscribe');
  });

  test('log messages come to the call that asked for them', async () => {
    const say = (level: string): string =>
      JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data: level } });
    await using server = await open((message, { say: speak, reply }) => {
      if (!isCall(message)) return undefined;
      for (const level of ['debug', 'error']) speak(say(level));
      reply(message, {});
      return 'handled';
    });
    await using proxy = await runningProxy(server);
    const heard = async (meta: object): Promise<readonly unknown[]> =>
      messagesIn(await askModern(proxy.url, modernRequest('tools/call', { name: 'a' }, { ...meta })));
    expect(await heard({})).toHaveLength(1);
    expect(await heard({ [META.logLevel]: 'warning' })).toMatchObject([
      { params: { level: 'error' } },
      { id: 1 },
    ]);
    expect(server.received).toContainEqual(expect.objectContaining({ method: 'logging/setLevel' }));
  });
});

test('a pipe that asks during two calls asks the one whose client is there, or nobody', async () => {
  const server = scriptedServer((message, { say }) => {
    const name = message.params?.['name'];
    if (isCall(message) && name !== 'silent')
      say(JSON.stringify({ jsonrpc: '2.0', id: name, method: 'roots/list' }));
    return isCall(message) ? 'handled' : undefined;
  });
  await using proxy = await runningProxy(server);
  const able = { [META.capabilities]: { roots: {} } };
  const asked = async (name: string): Promise<unknown> =>
    Object((await answerOf(proxy.url, 'tools/call', { name }, able))['result']).resultType;
  expect(await asked('a')).toBe('input_required');
  expect(await asked('b')).toBe('input_required');
  const silent = streamOf(proxy.url, modernRequest('tools/call', { name: 'silent' }, able));
  await server.heard(({ params }) => params?.['name'] === 'silent');
  const refused = streamOf(proxy.url, modernRequest('tools/call', { name: 'c' }, able));
  expect(await server.heard(({ id }) => id === 'c')).toMatchObject({ error: { code: -32601 } });
  for (const stream of [silent, refused]) (await stream).abort();
});

test('clients of both families use one id at once on one server, and hear their own', async () => {
  const server = scriptedServer();
  await using proxy = await runningProxy(server);
  const session = await newSession(proxy.url);
  const legacy = postJson(
    proxy.url,
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { of: 'legacy' } },
    session,
  );
  const modern = answerOf(proxy.url, 'tools/call', { name: 'modern' });
  expect(messagesIn(await legacy).at(-1)).toEqual({
    jsonrpc: '2.0',
    id: 1,
    result: { echo: { of: 'legacy' } },
  });
  expect(await modern).toMatchObject({ id: 1, result: { echo: { name: 'modern' }, resultType: 'complete' } });
});

describe('arguments that a tool wants repeated in headers', () => {
  const properties = {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    n: { type: 'integer', 'x-mcp-header': 'N' },
  };
  const own: Script = (message, { reply }) => {
    if (message.method !== 'tools/list') return undefined;
    reply(message, {
      resultType: 'complete',
      tools: [{ name: 'deploy', inputSchema: { type: 'object', properties } }],
    });
    return 'handled';
  };
  const call = (args: object, headers: Record<string, string>) => {
    const request = modernRequest('tools/call', { name: 'deploy', arguments: args });
    return { ...request, headers: { ...request.headers, ...headers } };
  };

  test.each<[string, object, Record<string, string>, number]>([
    ['as it is', { region: 'us' }, { 'Mcp-Param-Region': 'us' }, 200],
    ['wrapped', { region: 'é' }, { 'mcp-param-region': '=?base64?w6k=?=' }, 200],
    ['a number otherwise written', { n: 42 }, { 'Mcp-Param-N': '42.0' }, 200],
    ['what is null, not', { region: null }, {}, 200],
    ['what is not there', {}, { 'Mcp-Param-Region': 'us' }, 200],
    ['another value', { region: 'us' }, { 'Mcp-Param-Region': 'eu' }, 400],
    ['nothing', { region: 'us' }, {}, 400],
    ['what cannot be read', { region: 'us' }, { 'Mcp-Param-Region': '=?base64?dX?=' }, 400],
  ])('are checked for a server over a pipe: %s', async (_what, args, headers, status) => {
    const server = scriptedServer(modernScript(own));
    await using proxy = await runningProxy(server);
    await askModern(proxy.url, modernRequest('tools/list'));
    const answer = await askModern(proxy.url, call(args, headers));
    expect(answer.status).toBe(status);
    if (status === 400) expect(messagesIn(answer)).toMatchObject([{ id: 1, error: { code: -32020 } }]);
    expect(server.received.filter(isCall)).toHaveLength(status === 200 ? 1 : 0);
  });

  test('of a tool that no modern client has listed are the server’s', async () => {
    const server = scriptedServer(modernScript(own));
    await using proxy = await runningProxy(server);
    expect((await askModern(proxy.url, call({ region: 'us' }, {}))).status).toBe(200);
  });
});
