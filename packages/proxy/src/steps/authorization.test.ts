import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { describe, expect, test } from 'vitest';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { ask, eventsIn, messagesIn, openStream, postJson, type Answer } from '../doubles/http-client.ts';
import { askModern, modernRequest, modernScript, nextOf, streamOf } from '../doubles/modern.ts';
import { initializeRequest, newSession, runningProxy, type RunningProxy } from '../doubles/running-proxy.ts';
import { scriptedServer, type Received, type Script } from '../doubles/scripted-server.ts';

const POLICIES = [
  'permit(principal, action == Action::"call_tool", resource) when { ["look", "é\\"x"].contains(resource.name) };',
  'permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };',
  'permit(principal, action == Action::"get_prompt", resource == Prompt::"hello");',
  'permit(principal, action == Action::"read_resource", resource) when { resource.uri like "file:///open/*" };',
  'permit(principal, action == Action::"call_tool", resource == Tool::"n") when { context.arg_n < 5 };',
];
const cedar = (policies: readonly string[]) => ({
  authz: { document: { version: '1.0', type: 'cedarv1', cedar: { policies } } },
});

const LISTS: Readonly<Record<string, object>> = {
  'tools/list': {
    tools: [
      { name: 'look', x: 1.5 },
      { name: 'hidden', annotations: { readOnlyHint: false } },
      { name: 'reads', annotations: { readOnlyHint: true }, inputSchema: { type: 'object' } },
      { name: 'n' },
    ],
    nextCursor: 'c',
    cacheScope: 'public',
    _meta: { big: 1 },
  },
  'prompts/list': { prompts: [{ name: 'hello' }, { name: 'bye' }] },
  'resources/list': { resources: [{ uri: 'file:///open/a' }, { uri: 'file:///etc' }] },
  'resources/templates/list': {
    resourceTemplates: [{ uriTemplate: 'file:///open/{x}' }, { uriTemplate: 'file:///{x}' }],
  },
};

/** What comes after the cursor of the first page. */
const LAST_PAGE = { tools: [{ name: 'late', annotations: { readOnlyHint: true } }] };

const script: Script = (message, { reply }) => {
  const isLast = message.method === 'tools/list' && message.params?.['cursor'] === 'c';
  const result = isLast ? LAST_PAGE : LISTS[message.method ?? ''];
  if (result === undefined) return undefined;
  reply(message, result);
  return 'handled';
};

const request = (method: string, params?: unknown, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

interface Setup extends AsyncDisposable {
  readonly proxy: RunningProxy;
  readonly received: readonly Received[];
  /** Posts in one session, and gives back status and messages. */
  readonly ask: (message: unknown) => Promise<{ readonly status: number; readonly answer: unknown }>;
}

async function setup(
  kind: 'stdio' | 'http' | 'sse' = 'stdio',
  policies = POLICIES,
  own = script,
): Promise<Setup> {
  const server = kind === 'stdio' ? scriptedServer(own) : await scriptedHttpServer(kind, own);
  const proxy = await runningProxy(server, { parts: cedar(policies), osUser: 'al' });
  const talk = await (kind === 'sse' ? talkOverSse(proxy) : talkOverHttp(proxy));
  return {
    proxy,
    received: server.received,
    ask: talk,
    async [Symbol.asyncDispose]() {
      await proxy.close();
      if (Symbol.asyncDispose in server) await server[Symbol.asyncDispose]();
    },
  };
}

function contentOf(answer: Answer): { status: number; answer: unknown } {
  return { status: answer.status, answer: answer.text === '' ? undefined : messagesIn(answer).at(-1) };
}

async function talkOverHttp(proxy: RunningProxy): Promise<Setup['ask']> {
  const session = await newSession(proxy.url);
  return async (message) => contentOf(await postJson(proxy.url, message, session));
}

/** Answers come on the stream, refusals on the POST. */
async function talkOverSse(proxy: RunningProxy): Promise<Setup['ask']> {
  const stream = await openStream(proxy.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
  const endpoint = (await stream.next())?.data ?? '';
  const talk = async (message: unknown): Promise<{ status: number; answer: unknown }> => {
    const posted = await postJson(endpoint, message);
    if (posted.status !== 202) return contentOf(posted);
    const isRequest = typeof message === 'object' && message !== null && 'id' in message;
    const said = isRequest ? (await stream.next())?.data : undefined;
    return { status: 200, answer: said === undefined ? undefined : JSON.parse(said) };
  };
  await talk(initializeRequest());
  await talk({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return talk;
}

const UNAUTHORIZED = {
  status: 403,
  answer: { jsonrpc: '2.0', id: 1, error: { code: 403, message: 'Unauthorized' } },
};

describe.each(['stdio', 'http', 'sse'] as const)('in front of a server of %s', (kind) => {
  test.each<[string, string, unknown]>([
    ['a tool', 'tools/call', { name: 'hidden', arguments: {} }],
    ['a tool whose name differs by a character', 'tools/call', { name: 'Look' }],
    ['a call without a name', 'tools/call', {}],
    ['a call with an empty name', 'tools/call', { name: '' }],
    ['a call whose name is no text', 'tools/call', { name: ['look'] }],
    ['a call without parameters', 'tools/call', undefined],
    ['a call by its arguments', 'tools/call', { name: 'n', arguments: { n: 5 } }],
    ['a call without the arguments that are asked after', 'tools/call', { name: 'n' }],
    ['a prompt', 'prompts/get', { name: 'bye' }],
    ['a resource', 'resources/read', { uri: 'file:///open/../etc'.replace('open/', '') }],
    ['a subscription', 'resources/subscribe', { uri: 'file:///etc' }],
    ['a completion of a prompt', 'completion/complete', { ref: { type: 'ref/prompt', name: 'bye' } }],
    ['a completion of a resource', 'completion/complete', { ref: { type: 'ref/resource', uri: 'file:///{x}' } }],
    ['a completion of something else', 'completion/complete', { ref: { type: 'ref/x', name: 'hello' } }],
    ['a task of somebody else', 'tasks/get', { taskId: 't' }],
    ['a method that nobody knows', 'x/y', {}],
    ['what only servers send', 'elicitation/create', {}],
  ])('%s that no policy permits is refused, and the server hears nothing', async (_name, method, params) => {
    await using it = await setup(kind);
    expect(await it.ask(request(method, params))).toEqual(UNAUTHORIZED);
    expect(it.received.map((one) => one.method)).not.toContain(method);
  }); // prettier-ignore

  test.each<[string, unknown]>([
    ['tools/call', { name: 'look', arguments: { a: 1 } }],
    ['tools/call', { name: 'é"x' }],
    ['tools/call', { name: 'n', arguments: { n: 4 } }],
    ['prompts/get', { name: 'hello' }],
    ['resources/read', { uri: 'file:///open/a' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'hello' } }],
    ['features/list', {}],
  ])('%s %j that is permitted reaches the server as it is', async (method, params) => {
    await using it = await setup(kind);
    expect(await it.ask(request(method, params))).toEqual({
      status: 200,
      answer: { jsonrpc: '2.0', id: 1, result: { echo: params } },
    });
  });

  test('lists show what may be used, and keep all else', async () => {
    await using it = await setup(kind);
    const listed = async (method: string): Promise<unknown> => (await it.ask(request(method))).answer;
    const [look, , reads] = (LISTS['tools/list'] as { tools: unknown[] }).tools;
    expect(await listed('tools/list')).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: { tools: [look, reads], nextCursor: 'c', cacheScope: 'private', _meta: { big: 1 } },
    });
    expect(await listed('prompts/list')).toMatchObject({ result: { prompts: [{ name: 'hello' }] } });
    expect(await listed('resources/list')).toMatchObject({ result: { resources: [{ uri: 'file:///open/a' }] } });
    expect(await listed('resources/templates/list')).toMatchObject({
      result: { resourceTemplates: [{ uriTemplate: 'file:///open/{x}' }] },
    });
  }); // prettier-ignore

  test('what a server says of a tool counts, also before anybody has listed', async () => {
    const forbidding = [
      'permit(principal, action, resource);',
      'forbid(principal, action, resource) when { resource has readOnlyHint && !resource.readOnlyHint };',
    ];
    await using it = await setup(kind, forbidding);
    expect(await it.ask(request('tools/call', { name: 'hidden' }))).toEqual(UNAUTHORIZED);
    for (const name of ['reads', 'look', 'late', 'listed nowhere'])
      expect(await it.ask(request('tools/call', { name }))).toMatchObject({ status: 200 });
  });

  test('tools that are not there do not have the server list all with every call', async () => {
    await using it = await setup(kind);
    for (const name of ['a', 'b', 'c'])
      expect(await it.ask(request('tools/call', { name }))).toEqual(UNAUTHORIZED);
    const lists = it.received.filter(({ method }) => method === 'tools/list');
    expect(lists.map(({ params }) => params?.['cursor'])).toEqual([undefined, 'c']);
  });

  test('what a server said before it was started anew counts no longer', async () => {
    let readOnlyHint = true;
    const own: Script = (message, server) => {
      if (message.method !== 'tools/list') return script(message, server);
      server.reply(message, { tools: [{ name: 'changes', annotations: { readOnlyHint } }] });
      return 'handled';
    };
    await using it = await setup(kind, POLICIES, own);
    expect(await it.ask(request('tools/call', { name: 'changes' }))).toMatchObject({ status: 200 });
    readOnlyHint = false;
    it.proxy.backendEnded();
    it.proxy.backendStarted();
    const again = await (kind === 'sse' ? talkOverSse(it.proxy) : talkOverHttp(it.proxy));
    expect(await again(request('tools/call', { name: 'changes' }))).toEqual(UNAUTHORIZED);
  });

  test('a server that is away is said to be away', async () => {
    await using it = await setup(kind);
    it.proxy.backendEnded();
    expect(await it.ask(request('tools/call', { name: 'look' }))).toMatchObject({ status: 503 });
  });

  test('no tool is called where a policy heeds what the server says, and it says nothing', async () => {
    const own: Script = (message, { reply }) => {
      if (message.method === 'tools/list') reply(message, {});
      return message.method === 'tools/list' ? 'handled' : undefined;
    };
    await using it = await setup(kind, POLICIES, own);
    expect(await it.ask(request('tools/call', { name: 'look' }))).toEqual(UNAUTHORIZED);
  });
});

test.each(['stdio', 'http'] as const)(
  'what a server over %s said of its tools counts until it says that they are others',
  async (kind) => {
    let readOnlyHint = true;
    const own: Script = (message, server) => {
      if (message.params?.['name'] === 'look')
        server.say('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
      if (message.method !== 'tools/list') return script(message, server);
      server.reply(message, { tools: [{ name: 'changes', annotations: { readOnlyHint } }] });
      return 'handled';
    };
    await using it = await setup(kind, POLICIES, own);
    const called = (name: string) => it.ask(request('tools/call', { name }));
    expect(await called('changes')).toMatchObject({ status: 200 });
    readOnlyHint = false;
    expect(await called('changes')).toMatchObject({ status: 200 });
    expect(await called('look')).toMatchObject({ status: 200 });
    expect(await called('changes')).toEqual(UNAUTHORIZED);
  },
);

test.each<[string, string]>([
  ['a name twice', '{"name":"look","name":"hidden"}'],
  ['a name twice, once escaped', '{"name":"look","n\\u0061me":"hidden"}'],
])('a call with %s is refused', async (_name, params) => {
  await using it = await setup();
  expect(await it.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`)).toEqual(UNAUTHORIZED);
}); // prettier-ignore

const ABLE = {
  protocolVersion: '2025-11-25',
  capabilities: { roots: {} },
  clientInfo: { name: 'test', version: '1' },
};

test('while it is asked for its tools, what it asks a client still reaches that client', async () => {
  let lists = 0;
  const server = scriptedServer((message, on) => {
    const isList = message.method === 'tools/list';
    if (isList) lists += 1;
    if (isList && lists === 2) on.say('{"jsonrpc":"2.0","id":"q","method":"roots/list"}');
    else if (isList) on.reply(message, { tools: [{ name: 'look' }] });
    return isList || message.method === 'tools/call' ? 'handled' : undefined;
  });
  const clock = manualClock();
  const leaving = new AbortController();
  await using proxy = await runningProxy(server, { parts: cedar(POLICIES), osUser: 'al', clock });
  using _left = { [Symbol.dispose]: () => leaving.abort() };
  const both = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const called = async (name: string) => {
    const begun = await postJson(proxy.url, request('initialize', ABLE));
    const headers = { ...both, 'Mcp-Session-Id': String(begun.headers['mcp-session-id']) };
    await postJson(proxy.url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
    const body = JSON.stringify(request('tools/call', { name }));
    return openStream(proxy.url, { body, headers, signal: leaving.signal });
  };
  const stream = called('look');
  await server.heard(({ method }) => method === 'tools/call');
  clock.pass(6_000);
  void called('unheard of').catch(() => {});
  // The first event only tells an id.
  expect((await (await stream).next())?.data).toBe('');
  expect((await (await stream).next())?.data).toContain('roots/list');
}); // prettier-ignore

test('a call that is a notification is decided too', async () => {
  await using it = await setup();
  const called = (name: string) => it.ask({ jsonrpc: '2.0', method: 'tools/call', params: { name } });
  expect(await called('hidden')).toEqual({ status: 403, answer: { jsonrpc: '2.0', error: { code: 403, message: 'Unauthorized' } } }); // prettier-ignore
  expect(await called('look')).toMatchObject({ status: 202 });
});

test('a large call is decided by what it names, and by its arguments', async () => {
  await using it = await setup();
  const padding = 'x'.repeat(100_000);
  const called = (name: string, n: number) =>
    it.ask(request('tools/call', { name, arguments: { padding, n } }));
  expect(await called('n', 4)).toMatchObject({ status: 200 });
  expect(await called('n', 5)).toEqual(UNAUTHORIZED);
  expect(await called('hidden', 4)).toEqual(UNAUTHORIZED);
});

test('answers and notifications of clients pass, but for those that nobody knows', async () => {
  await using it = await setup();
  expect(await it.ask({ jsonrpc: '2.0', id: 9, result: {} })).toMatchObject({ status: 202 });
  for (const method of ['notifications/cancelled', 'notifications/roots/list_changed'])
    expect(await it.ask({ jsonrpc: '2.0', method, params: { requestId: 99 } })).toMatchObject({
      status: 202,
    });
  expect(await it.ask({ jsonrpc: '2.0', method: 'notifications/x' })).toMatchObject({ status: 403 });
});

test.each<[string, string]>([
  ['no list', '{"result":{}}'],
  ['what is no list', '{"result":{"tools":{"name":"hidden"}}}'],
  ['two lists', '{"result":{"tools":[],"tools":[{"name":"hidden"}]}}'],
  ['a tool without a name', '{"result":{"tools":[{"title":"hidden"}]}}'],
  ['a tool with two names', '{"result":{"tools":[{"name":"look","name":"hidden"}]}}'],
  ['a tool that is none', '{"result":{"tools":["hidden"]}}'],
])('an answer with %s is withheld', async (_name, said) => {
  const own: Script = ({ id, method }, { say }) => {
    if (method !== 'tools/list') return undefined;
    say(`{"jsonrpc":"2.0","id":${String(id)},${said.slice(1)}`);
    return 'handled';
  };
  await using it = await setup('stdio', POLICIES, own);
  const { answer } = await it.ask(request('tools/list'));
  expect(answer).toMatchObject({ id: 1, error: { code: -32_603 } });
  expect(JSON.stringify(answer)).not.toContain('hidden');
  const asJson = await ask(it.proxy.url, {
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify(request('tools/list')),
  });
  expect(asJson.status).toBe(500);
});

test('an error of the server passes, and what it says before a list is not held back', async () => {
  const own: Script = ({ id, method }, { say }) => {
    if (method !== 'tools/list') return undefined;
    say('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"first"}}');
    say(`{"jsonrpc":"2.0","id":${String(id)},"error":{"code":1,"message":"x"}}`);
    return 'handled';
  };
  await using it = await setup('stdio', POLICIES, own);
  const session = await newSession(it.proxy.url);
  const { text } = await postJson(it.proxy.url, request('tools/list'), session);
  const said = eventsIn(text).flatMap(({ data }) => (data === '' ? [] : [JSON.parse(data)]));
  expect(said).toMatchObject([{ params: { data: 'first' } }, { id: 1, error: { code: 1 } }]);
});

test('a task is theirs who started it', async () => {
  const own: Script = (message, server) => {
    if (message.method !== 'tools/call') return script(message, server);
    server.reply(message, { task: { taskId: 'mine' } });
    return 'handled';
  };
  await using it = await setup('stdio', POLICIES, own);
  expect(await it.ask(request('tasks/get', { taskId: 'mine' }))).toEqual(UNAUTHORIZED);
  await it.ask(request('tools/call', { name: 'look', task: {} }));
  expect(await it.ask(request('tasks/get', { taskId: 'mine' }))).toMatchObject({ status: 200 });
  expect(await it.ask(request('tasks/result', { taskId: 'other' }))).toEqual(UNAUTHORIZED);
});

test('a task of a server that was started anew is nobody’s, whoever has one of its name from before', async () => {
  const own: Script = (message, server) => {
    if (message.method !== 'tools/call') return script(message, server);
    server.reply(message, { task: { taskId: 'first' } });
    return 'handled';
  };
  await using it = await setup('stdio', POLICIES, own);
  await it.ask(request('tools/call', { name: 'look', task: {} }));
  expect(await it.ask(request('tasks/get', { taskId: 'first' }))).toMatchObject({ status: 200 });
  it.proxy.backendStarted();
  const again = await talkOverHttp(it.proxy);
  expect(await again(request('tasks/get', { taskId: 'first' }))).toEqual(UNAUTHORIZED);
});

describe.each(['legacy', 'modern'] as const)('modern clients of a %s server', (era) => {
  const own: Script = (message, server) => {
    const { _meta, ...params } = message.params ?? {};
    if (message.method === 'tools/call') server.reply(message, { resultType: 'complete', echo: params });
    else return script(message, server);
    return 'handled';
  };
  const modern = era === 'modern' ? modernScript(own) : own;

  test.each(['stdio', 'http'] as const)('over %s see and call what they may', async (kind) => {
    await using it = await setup(kind, POLICIES, modern);
    const asked = async (method: string, params: Readonly<Record<string, unknown>> = {}) =>
      contentOf(await askModern(it.proxy.url, modernRequest(method, params)));
    expect(await asked('tools/call', { name: 'hidden' })).toEqual(UNAUTHORIZED);
    expect(await asked('tools/call', { name: 'reads' })).toMatchObject({ status: 200, answer: { result: {} } });
    expect(await asked('tools/list')).toMatchObject({
      status: 200,
      answer: { result: { tools: [{ name: 'look' }, { name: 'reads' }], cacheScope: 'private' } },
    });
    expect(await asked('tools/call', { name: 'reads' })).toMatchObject({ status: 200, answer: { result: {} } });
    expect(await asked('server/discover')).toMatchObject({ status: 200, answer: { result: {} } });
  }); // prettier-ignore

  test('hear of the resources that they may read', async () => {
    await using it = await setup('stdio', POLICIES, modern);
    const notifications = { resourceSubscriptions: ['file:///open/a', 'file:///etc'] };
    const stream = await streamOf(it.proxy.url, modernRequest('subscriptions/listen', { notifications }));
    expect(await nextOf(stream)).toMatchObject({
      params: { notifications: { resourceSubscriptions: ['file:///open/a'] } },
    });
    expect(JSON.stringify(it.received)).not.toContain('file:///etc');
    stream.abort();
  });
});

describe('a decision point', () => {
  interface Pdp extends AsyncDisposable {
    readonly url: string;
    readonly asked: unknown[];
  }
  async function decisionPoint(answer: (asked: { resource: string }) => [number, string]): Promise<Pdp> {
    const asked: unknown[] = [];
    const server = createServer((req, res) => {
      let text = '';
      req.on('data', (chunk) => (text += String(chunk)));
      req.on('end', () => {
        const body = JSON.parse(text);
        asked.push({ url: req.url, ...body });
        const [status, said] = answer(body);
        res.writeHead(status, { 'content-type': 'application/json' }).end(said);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/pdp/`,
      asked,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }
  const partsFor = (url: string, more: object = {}) => ({
    authz: { document: { version: '1.0', type: 'httpv1', pdp: { http: { url }, claim_mapping: 'standard', ...more } } },
  }); // prettier-ignore

  test('is asked about each call and each item, and is told what the configuration says', async () => {
    await using pdp = await decisionPoint(({ resource }) => [200, `{"allow":${/:(?:look|n)$/u.test(resource)}}`]);
    const parts = partsFor(pdp.url, { context: { include_args: true, include_operation: true } });
    await using proxy = await runningProxy(scriptedServer(script), { parts, osUser: 'al' });
    const talk = await talkOverHttp(proxy);
    expect(await talk(request('tools/call', { name: 'look', arguments: { a: [1] } }))).toMatchObject({ status: 200 });
    expect(pdp.asked).toEqual([
      {
        url: '/pdp/decision',
        principal: { sub: 'al' },
        operation: 'mcp:tool:call',
        resource: 'mrn:mcp:test:tool:look',
        context: { mcp: { feature: 'tool', operation: 'call', resource_id: 'look', args: { a: [1] } } },
      },
    ]);
    expect(await talk(request('tools/call', { name: 'hidden' }))).toEqual(UNAUTHORIZED);
    expect((await talk(request('tools/list'))).answer).toMatchObject({
      result: { tools: [{ name: 'look' }, { name: 'n' }] },
    });
  }); // prettier-ignore

  test.each<[string, number, string]>([
    ['another status', 201, '{"allow":true}'],
    ['no JSON', 200, 'allow'],
    ['no clear yes', 200, '{"allow":"true"}'],
    ['a no', 200, '{"allow":false}'],
  ])('that answers %s denies', async (_name, status, said) => {
    await using pdp = await decisionPoint(() => [status, said]);
    await using proxy = await runningProxy(scriptedServer(script), { parts: partsFor(pdp.url) });
    const talk = await talkOverHttp(proxy);
    expect(await talk(request('tools/call', { name: 'look' }))).toEqual(UNAUTHORIZED);
    expect((await talk(request('tools/list'))).answer).toMatchObject({ result: { tools: [] } });
  });

  test('that is not there denies', async () => {
    const pdp = await decisionPoint(() => [200, '{"allow":true}']);
    await pdp[Symbol.asyncDispose]();
    await using proxy = await runningProxy(scriptedServer(script), { parts: partsFor(pdp.url) });
    expect(await (await talkOverHttp(proxy))(request('tools/call', { name: 'look' }))).toEqual(UNAUTHORIZED);
  });
});

test.each<[string, unknown, string]>([
  ['no version', { type: 'cedarv1', cedar: { policies: ['x'] } }, '"version" is missing'],
  ['no type', { version: '1.0', cedar: { policies: ['x'] } }, '"type" is missing'],
  ['another type', { version: '1.0', type: 'opa' }, '"type" must be one of cedarv1, httpv1'],
  ['no policies', { version: '1.0', type: 'cedarv1', cedar: { policies: [] } }, '"cedar.policies" holds no policy'],
  ['a policy that is none', { version: '1.0', type: 'cedarv1', cedar: { policies: ['permit'] } }, 'policy 0'],
  ['entities that are no list', { version: '1.0', type: 'cedarv1', cedar: { policies: ['x'], entities_json: '{}' } }, '"cedar.entities_json"'],
  ['a group type with a namespace', { version: '1.0', type: 'cedarv1', cedar: { policies: ['x'], group_entity_type: 'A::B' } }, '"cedar.group_entity_type"'],
  ['a key that nobody knows', { version: '1.0', type: 'cedarv1', cedar: { policies: ['x'], polices: [] } }, 'unknown key: "polices"'],
  ['another provider', { version: '1.0', type: 'cedarv1', cedar: { policies: ['x'], primary_upstream_provider: 'y' } }, 'primary_upstream_provider'],
  ['no claim mapping', { version: '1.0', type: 'httpv1', pdp: { http: { url: 'http://x.test' } } }, '"pdp.claim_mapping" is missing'],
  ['an address that is none', { version: '1.0', type: 'httpv1', pdp: { http: { url: 'x' }, claim_mapping: 'mpe' } }, '"pdp.http.url"'],
])('a proxy does not come up with %s', async (_name, document, message) => {
  const parts = { authz: { document: document as Readonly<Record<string, unknown>> } };
  await expect(runningProxy(scriptedServer(), { parts })).rejects.toMatchObject({
    code: 'proxy/step-unbuildable',
    message: expect.stringContaining(message),
  });
}); // prettier-ignore
