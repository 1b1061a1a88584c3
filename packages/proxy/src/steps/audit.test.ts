import { copyFile, mkdtemp, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { AUDIENCE, ISSUER, signed, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import type { Backend } from '../backend/backend.ts';
import { ask, openStream, postJson } from '../doubles/http-client.ts';
import { askModern, modernRequest, modernScript } from '../doubles/modern.ts';
import type { Step } from '../call/chain.ts';
import { refuse } from '../call/refuse.ts';
import { META } from '../message/envelope.ts';
import { idOf } from '../message/json-rpc.ts';
import { initializeRequest, newSession, runningProxy, type RunningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { scriptedServer, type Script } from '../doubles/scripted-server.ts';
import { silentLog } from '@skep/core/log/log.ts';
import type { ProxyOptions } from '../start.ts';
import { auditSettings, auditShape, type AuditConfig } from './audit/settings.ts';
import type { PartSettings } from './parts.ts';

let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skep-audit-'));
});
afterAll(() => rm(folder, { recursive: true }));

interface Event {
  readonly type: string;
  readonly outcome: string;
  readonly component: string;
  readonly audit_id: string;
  readonly source: { readonly value: string; readonly extra: Readonly<Record<string, string>> };
  readonly subjects: Readonly<Record<string, string>>;
  readonly target: Readonly<Record<string, string>>;
  readonly metadata: { readonly extra: Readonly<Record<string, unknown>> };
  readonly data?: unknown;
}

interface Audited extends AsyncDisposable {
  readonly proxy: RunningProxy;
  readonly path: string;
  /** The events so far, once there are as many as that. */
  readonly events: (count: number) => Promise<readonly Event[]>;
  readonly text: () => Promise<string>;
}

async function audited(
  server: { readonly backend: Backend },
  config: AuditConfig = {},
  options: Partial<ProxyOptions> = {},
): Promise<Audited> {
  files += 1;
  const path = join(folder, `${files}.log`);
  const parts = { ...options.parts, audit: auditSettings(config, path) };
  const proxy = await runningProxy(server, { osUser: 'alice', ...options, parts });
  const text = () => readFile(path, 'utf8');
  return {
    proxy,
    path,
    text,
    events: (count) =>
      vi.waitFor(async () => {
        const lines = (await text()).split('\n').slice(0, -1);
        expect(lines.length).toBeGreaterThanOrEqual(count);
        return lines.map((line): Event => JSON.parse(line));
      }),
    [Symbol.asyncDispose]: () => proxy.close(),
  };
}

const call = (name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name, arguments: args },
});

/** Fails for the tool `bad`, and says something of its own before the answer of `slow`. */
const script: Script = ({ id, method, params }, { say }) => {
  if (method !== 'tools/call') return undefined;
  const error = { code: -32000, message: `no ${'x'.repeat(300)}` };
  if (params?.['name'] === 'slow')
    say(
      JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } }),
    );
  if (params?.['name'] === 'bad' || params?.['name'] === 'slow')
    say(JSON.stringify({ jsonrpc: '2.0', id, error }));
  else return undefined;
  return 'handled';
};

describe('a call', () => {
  test('is one event that says who did what, and how that ended', async () => {
    await using it = await audited(scriptedServer());
    const session = await newSession(it.proxy.url);
    const headers = {
      ...session,
      'User-Agent': 'agent/1',
      'X-Request-ID': 'r-1',
      'X-Forwarded-For': '8.8.8.8',
    };
    const { text } = await postJson(it.proxy.url, call('echo'), headers);
    const [initialize, initialized, called] = await it.events(3);
    expect(initialize).toMatchObject({
      type: 'mcp_initialize',
      outcome: 'success',
      component: 'test',
      subjects: { user_id: 'alice', user: 'Local User: alice', client_name: 'test', client_version: '1' },
    });
    expect(initialized).toMatchObject({ type: 'mcp_request', metadata: { extra: { status: 202 } } });
    expect(called).toMatchObject({
      type: 'mcp_tool_call',
      outcome: 'success',
      source: { type: 'network', value: '127.0.0.1', extra: { user_agent: 'agent/1', request_id: 'r-1' } },
      target: { endpoint: '/mcp', method: 'tools/call', type: 'tool', name: 'echo' },
      metadata: { extra: { transport: 'http', response_size_bytes: Buffer.byteLength(text), status: 200 } },
    });
    expect(called?.metadata.extra['duration_ms']).toEqual(expect.any(Number));
    expect(called?.source.extra['session_id']).toMatch(/^[0-9a-f]{16}$/);
    expect(await it.text()).not.toContain(session['Mcp-Session-Id']);
    expect((await stat(it.path)).mode & 0o777).toBe(0o600);
  });

  test.each(['stdio', 'http', 'sse', 'sse of stdio'] as const)(
    'that the server answers with an error is one over %s, also where something comes before the answer',
    async (kind) => {
      const isPipe = kind === 'stdio' || kind === 'sse of stdio';
      await using http = await scriptedHttpServer(kind === 'sse' ? 'sse' : 'http', script);
      await using it = await audited(
        isPipe ? scriptedServer(script) : http,
        {},
        kind === 'sse of stdio' ? { mode: 'sse' } : {},
      );
      const post = kind.startsWith('sse') ? await overSse(it.proxy) : await overHttp(it.proxy);
      for (const name of ['fine', 'bad', 'slow']) await post(call(name));
      const events = (await it.events(5)).filter(({ type }) => type === 'mcp_tool_call');
      expect(events.map(({ target, outcome }) => [target['name'], outcome])).toEqual([
        ['fine', 'success'],
        ['bad', 'application_error'],
        ['slow', 'application_error'],
      ]);
      expect(events[1]?.metadata.extra).toMatchObject({
        transport: kind.startsWith('sse') ? 'sse' : 'http',
        jsonrpc_error_code: -32000,
        jsonrpc_error_message: `no ${'x'.repeat(253)}`,
      });
    },
  );

  test('that a server over HTTP refuses by its status is a failure, with the code of the refusal', async () => {
    await using http = await scriptedHttpServer('http', ({ id, method }, { say }) => {
      if (method !== 'tools/call') return undefined;
      say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'not like this' } }));
      return 'handled';
    });
    await using it = await audited(http);
    await postJson(it.proxy.url, call('bad'), await newSession(it.proxy.url));
    expect((await it.events(3)).at(-1)).toMatchObject({
      type: 'mcp_tool_call',
      outcome: 'failure',
      metadata: {
        extra: { status: 400, jsonrpc_error_code: -32602, jsonrpc_error_message: 'not like this' },
      },
    });
  });

  test('that is refused on its way is an event with whoever is known to have made it', async () => {
    const signIn = {
      issuer: 'https://idp.test',
      jwksUrl: 'http://127.0.0.1:1/',
      audience: 'x',
      allowHttp: true,
      allowPrivateIP: true,
    };
    await using it = await audited(scriptedServer(), {}, { signIn });
    await postJson(it.proxy.url, call('echo'), {
      Authorization: 'Bearer hunter2-token',
      Cookie: 'sid=hunter2',
    });
    expect((await it.events(1))[0]).toMatchObject({
      type: 'http_request',
      outcome: 'denied',
      subjects: { user: 'anonymous' },
      target: { endpoint: '/mcp', method: 'POST', type: 'endpoint' },
      metadata: { extra: { status: 401 } },
    });
    expect(await it.text()).not.toContain('hunter2');
  });

  test('of whoever hosts the proxy is no event, and the server hears nothing of how it is told', async () => {
    await using http = await scriptedHttpServer('http');
    await using it = await audited(http);
    const session = await newSession(it.proxy.url);
    await postJson(it.proxy.url, call('own'), { ...session, 'X-Skep-Pass': it.proxy.pass });
    await postJson(it.proxy.url, call('theirs'), { ...session, 'X-Skep-Pass': 'x' });
    const events = await it.events(3);
    expect(events.map(({ target }) => target['name'])).toEqual(['test', 'initialized', 'theirs']);
    expect(http.headers.some((headers) => 'x-skep-pass' in headers)).toBe(false);
  });

  test.each([
    ['not JSON', '{', 'http_request', -32700],
    ['of an unknown session', JSON.stringify(call('x')), 'mcp_tool_call', -32001],
  ])('that is %s is a failure, with the code of the refusal', async (_name, body, type, code) => {
    const outcome = 'failure';
    await using it = await audited(scriptedServer());
    await postJson(it.proxy.url, body, { 'Mcp-Session-Id': 'no-such' });
    expect((await it.events(1))[0]).toMatchObject({
      type,
      outcome,
      metadata: { extra: { jsonrpc_error_code: code } },
    });
  });

  test('whose client leaves before the answer is a failure, and is written', async () => {
    const server = scriptedServer(({ method }) => (method === 'tools/call' ? 'handled' : undefined));
    await using it = await audited(server);
    const headers = {
      ...(await newSession(it.proxy.url)),
      'Content-Type': 'application/json',
      Accept: 'application/json',
    };
    const leaving = request(it.proxy.url, { method: 'POST', headers, agent: false });
    leaving.on('error', () => {}).end(JSON.stringify(call('never')));
    await server.heard(({ method }) => method === 'tools/call');
    leaving.destroy();
    const last = (await it.events(3)).at(-1);
    expect(last).toMatchObject({
      type: 'mcp_tool_call',
      outcome: 'failure',
      metadata: { extra: { incomplete: true } },
    });
  });

  test('that is refused when its client has left is denied all the same', async () => {
    const leaving = Promise.withResolvers<void>();
    const authorization: Step = async ({ res, incoming }) => {
      const gone = once(res, 'close');
      leaving.resolve();
      await gone;
      refuse(res, 'proxy/unauthorized', { id: incoming && idOf(incoming.message) });
    };
    await using it = await audited(scriptedServer(), {}, { steps: { authorization } });
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json' };
    const client = request(it.proxy.url, { method: 'POST', headers, agent: false });
    client.on('error', () => {}).end(JSON.stringify(call('wipe')));
    await leaving.promise;
    client.destroy();
    expect((await it.events(1))[0]).toMatchObject({
      type: 'mcp_tool_call',
      outcome: 'denied',
      target: { name: 'wipe' },
      metadata: { extra: { incomplete: true } },
    });
  });
});

/** Posts to a server of streamable HTTP, or to a proxy that speaks it. */
async function overHttp({ url }: RunningProxy) {
  const session = await newSession(url);
  return (message: object) => postJson(url, message, session);
}

/** Opens a stream of HTTP with SSE, and posts to it; resolves when the answer is there. */
async function overSse({ url }: RunningProxy) {
  const stream = await openStream(url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
  const address = new URL((await stream.next())?.data ?? '', url).href;
  const post = async (message: object & { readonly id?: unknown }) => {
    await postJson(address, message);
    for (let event = await stream.next(); event !== undefined; event = await stream.next())
      if (JSON.parse(event.data).id === message.id) return;
  };
  await post(initializeRequest(1));
  return post;
}

test.each<[string, object, object]>([
  ['initialize', { clientInfo: { name: 'x' } }, { type: 'mcp_initialize', target: { type: 'endpoint', name: 'x' } }],
  ['tools/call', { name: 'x' }, { type: 'mcp_tool_call', target: { type: 'tool', name: 'x' } }],
  ['tools/list', { cursor: 'x' }, { type: 'mcp_tools_list', target: { type: 'tool', name: 'x' } }],
  ['resources/read', { uri: 'x:y' }, { type: 'mcp_resource_read', target: { type: 'resource', name: 'x:y' } }],
  ['resources/list', {}, { type: 'mcp_resources_list', target: { type: 'resource' } }],
  ['prompts/get', { name: 'x' }, { type: 'mcp_prompt_get', target: { type: 'prompt', name: 'x' } }],
  ['prompts/list', {}, { type: 'mcp_prompts_list', target: { type: 'prompt' } }],
  ['ping', {}, { type: 'mcp_ping', target: { type: 'endpoint', name: 'ping' } }],
  ['logging/setLevel', { level: 'info' }, { type: 'mcp_logging', target: { type: 'endpoint', name: 'info' } }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'x' } }, { type: 'mcp_completion', target: { type: 'endpoint', name: 'x' } }],
  ['notifications/message', { data: 1 }, { type: 'mcp_notification', target: { type: 'endpoint' } }],
  ['notifications/roots/list_changed', {}, { type: 'mcp_roots_list_changed', target: { type: 'endpoint', name: 'roots' } }],
  ['resources/templates/list', {}, { type: 'mcp_request', target: { type: 'resource' } }],
  ['tasks/get', { taskId: 't' }, { type: 'mcp_request', target: { type: 'endpoint', name: 't' } }],
  ['x/y', {}, { type: 'mcp_request', target: { type: 'endpoint' } }],
])('%s %j is an event of its type, about its target', async (method, params, expected) => {
  await using it = await audited(scriptedServer());
  const id = method.startsWith('notifications/') ? {} : { id: 1 };
  await postJson(it.proxy.url, { jsonrpc: '2.0', ...id, method, params }, await newSession(it.proxy.url));
  const { type, target: { endpoint, method: told, ...target } = {} } = (await it.events(3))[2] ?? {};
  expect([endpoint, told, { type, target }]).toEqual(['/mcp', method, expected]);
}); // prettier-ignore

test('a client of the modern revision is named with each of its calls', async () => {
  await using it = await audited(scriptedServer(modernScript()));
  const clientInfo = { [META.clientInfo]: { name: 'new', version: '2' } };
  await askModern(it.proxy.url, modernRequest('tools/call', { name: 'x' }, clientInfo));
  expect((await it.events(1))[0]).toMatchObject({
    type: 'mcp_tool_call',
    subjects: { client_name: 'new', client_version: '2' },
  });
});

const nothing = {
  version: '1.0',
  type: 'cedarv1',
  cedar: { policies: ['forbid(principal, action, resource);'] },
};
test.each<[string, PartSettings, number, string]>([
  ['a policy', { authz: { document: nothing } }, 403, 'denied'],
  ['a rate', { rateLimit: { shared: { maxTokens: 1, refillMs: 60_000 } } }, 429, 'failure'],
  ['the view of its tools', { tools: { filter: ['y'] } }, 200, 'application_error'],
])('a call that %s refuses is an event, too', async (_name, parts, status, outcome) => {
  await using it = await audited(scriptedServer(), {}, { parts });
  const session = await newSession(it.proxy.url);
  for (const name of ['x', 'x']) await postJson(it.proxy.url, call(name), session);
  expect((await it.events(4)).at(-1)).toMatchObject({ outcome, metadata: { extra: { status } } });
});

test('a call whose server is gone is an error', async () => {
  const http = await scriptedHttpServer('http');
  await using it = await audited(http);
  await http[Symbol.asyncDispose]();
  await postJson(it.proxy.url, call('x'));
  expect(await it.events(1)).toMatchObject([{ outcome: 'error', metadata: { extra: { status: 502 } } }]);
});

test('a stream is an event when it opens, and when it is refused', async () => {
  await using it = await audited(scriptedServer());
  const headers = { ...(await newSession(it.proxy.url)), Accept: 'text/event-stream' };
  const stream = await openStream(it.proxy.url, { method: 'GET', headers });
  const opened = (await it.events(3)).at(-1);
  expect(opened).toMatchObject({
    type: 'sse_connection',
    outcome: 'success',
    target: { method: 'GET', type: 'sse_endpoint' },
  });
  stream.abort();
  await ask(it.proxy.url, { method: 'GET', headers: { ...headers, 'Mcp-Session-Id': 'x' } });
  const events = await it.events(4);
  expect(events).toHaveLength(4);
  expect(events[3]).toMatchObject({
    type: 'sse_connection',
    outcome: 'failure',
    metadata: { extra: { status: 404 } },
  });
});

describe('the data of a call', () => {
  test.each(['stdio', 'http'] as const)(
    'is kept where it is asked for, without secrets, over %s',
    async (kind) => {
      await using http = await scriptedHttpServer('http');
      const config = { includeRequestData: true, includeResponseData: true };
      await using it = await audited(kind === 'http' ? http : scriptedServer(), config);
      const args = { path: '/a', db_password: 'hunter2', note: 'Bearer hunter2hunter2' };
      await postJson(it.proxy.url, call('echo', args), await newSession(it.proxy.url));
      const { data } = (await it.events(3))[2] ?? {};
      const kept = { path: '/a', db_password: '[redacted]', note: 'Bearer [redacted]' };
      expect(data).toMatchObject({
        request: { method: 'tools/call', params: { arguments: kept } },
        response: { result: { echo: { arguments: kept } } },
      });
      expect(await it.text()).not.toContain('hunter2');
    },
  );

  test('is left out whole and noted where it is larger than may be kept', async () => {
    await using it = await audited(scriptedServer(), {
      includeRequestData: true,
      includeResponseData: true,
      maxDataSize: 200,
    });
    await postJson(it.proxy.url, call('echo', { text: 'y'.repeat(300) }), await newSession(it.proxy.url));
    const event = (await it.events(3))[2];
    expect(event?.metadata.extra).toMatchObject({ request_truncated: true, response_truncated: true });
    expect(event).not.toHaveProperty('data');
  });
});

test('on whose behalf a token is used is told as far as it may be deep', async () => {
  const key = await signingKey('k1');
  const act = { iss: 'https://a.test', sub: 'agent', act: { sub: 'tool', act: { sub: 'deeper' } } };
  const jwks = createServer((_req, res) => void res.end(JSON.stringify({ keys: [key.jwk] }))).listen(
    0,
    '127.0.0.1',
  );
  await once(jwks, 'listening');
  const { port } = jwks.address() as AddressInfo;
  const signIn = {
    issuer: ISSUER,
    jwksUrl: `http://127.0.0.1:${port}/`,
    audience: AUDIENCE,
    allowHttp: true,
    allowPrivateIP: true,
  };
  await using it = await audited(
    scriptedServer(),
    { maxDelegationDepth: 2 },
    { signIn, clock: manualClock() },
  );
  const token = await signed(key, { name: 'Alice', act });
  await postJson(it.proxy.url, call('echo'), { Authorization: `Bearer ${token}` });
  expect((await it.events(1))[0]).toMatchObject({
    type: 'mcp_tool_call',
    outcome: 'success',
    subjects: { user_id: 'alice', user: 'Alice' },
    delegation: { chain: [{ iss: 'https://a.test', sub: 'agent' }, { sub: 'tool' }], truncated: true },
  });
  expect(await it.text()).not.toContain(token);
  jwks.close();
});

test('only the events that are wanted are written', async () => {
  const config = {
    eventTypes: ['mcp_tool_call', 'mcp_initialize'],
    excludeEventTypes: ['mcp_initialize'],
    component: 'c',
  };
  await using it = await audited(scriptedServer(), config);
  await postJson(it.proxy.url, call('echo'), await newSession(it.proxy.url));
  await postJson(it.proxy.url, call('echo'));
  const events = await it.events(2);
  expect(events.map(({ type, component }) => [type, component])).toEqual([
    ['mcp_tool_call', 'c'],
    ['mcp_tool_call', 'c'],
  ]);
});

test('who a client is told to be by a trusted proxy is the source', async () => {
  await using it = await audited(scriptedServer(), {}, { trustProxyHeaders: true });
  await postJson(it.proxy.url, call('echo'), { 'X-Forwarded-For': '8.8.8.8, 10.0.0.1' });
  expect((await it.events(1))[0]?.source.value).toBe('8.8.8.8');
});

test.each<[string, (path: string) => Promise<void>]>([
  ['moves it away', (path) => rename(path, `${path}.1`)],
  [
    'moves it away and makes the new one',
    async (path) => {
      await rename(path, `${path}.1`);
      await writeFile(path, '', { mode: 0o600 });
    },
  ],
  [
    'copies and empties it',
    async (path) => {
      await copyFile(path, `${path}.1`);
      await truncate(path);
    },
  ],
])('no event is lost to a rotator of logs that %s, and the proxy needs no signal', async (_how, rotate) => {
  const clock = manualClock();
  await using it = await audited(scriptedServer(), { eventTypes: ['mcp_tool_call'] }, { clock });
  await postJson(it.proxy.url, call('before'));
  await it.events(1);
  await rotate(it.path);
  clock.pass(1_000);
  await postJson(it.proxy.url, call('after'));
  await postJson(it.proxy.url, call('later'));
  expect((await it.events(2)).map(({ target }) => target['name'])).toEqual(['after', 'later']);
  expect(await readFile(`${it.path}.1`, 'utf8')).toMatch(/^\{.*"before".*\}\n$/);
});

test('a file that cannot be opened keeps the proxy from starting', async () => {
  const config = { logFile: join(folder, 'none', 'audit.log') };
  await expect(audited(scriptedServer(), config)).rejects.toMatchObject({
    code: 'proxy/step-unbuildable',
    message: expect.stringContaining('--enable-audit or --audit-config: cannot open the audit log'),
  });
});

test.skipIf(process.platform !== 'linux')(
  'a file that cannot be written to fails no call, and is told',
  async () => {
    const told: unknown[] = [];
    const log = { ...silentLog, error: (_: object, message: string) => told.push(message), child: () => log };
    await using it = await audited(scriptedServer(), { logFile: '/dev/full' }, { log });
    expect(await postJson(it.proxy.url, call('echo'))).toMatchObject({ status: 200 });
    await vi.waitFor(() => expect(told).toContain('audit events could not be written'));
  },
);

test('a configuration that says nothing keeps no data, looks for errors, and allows for a kilobyte', () => {
  const usual = {
    component: undefined,
    eventTypes: [],
    excludeEventTypes: [],
    withRequests: false,
    withResponses: false,
    detectsErrors: true,
    maxDataBytes: 1024,
    maxDelegationDepth: 10,
    path: '/usual.log',
  };
  expect(auditSettings({}, '/usual.log')).toEqual(usual);
  expect(auditSettings({ enabled: false, maxDataSize: 0, component: '', logFile: '' }, '/usual.log')).toEqual(
    usual,
  );
});

test('errors in answers are successes where nobody looks for them', async () => {
  await using it = await audited(scriptedServer(script), { detectApplicationErrors: false });
  await postJson(it.proxy.url, call('bad'));
  expect(await it.events(1)).toMatchObject([{ outcome: 'success' }]);
  expect(await it.text()).not.toContain('jsonrpc_error');
});

test('an event has no members but those that are told of', async () => {
  await using it = await audited(scriptedServer(script), {
    includeRequestData: true,
    includeResponseData: true,
  });
  const headers = { ...(await newSession(it.proxy.url)), 'User-Agent': 'agent/1', 'X-Request-ID': 'r-1' };
  await postJson(it.proxy.url, call('bad'), headers);
  const named = (value: object, path = ''): readonly string[] =>
    Object.entries(value).flatMap(([name, one]) =>
      typeof one === 'object' && one !== null && path !== 'data.'
        ? named(one, `${path}${name}.`)
        : [path + name],
    );
  const members =
    'time level msg audit_id type logged_at outcome component source.type source.value source.extra.user_agent source.extra.request_id ' +
    'source.extra.session_id subjects.user_id subjects.user target.endpoint target.method target.type target.name ' +
    'metadata.extra.duration_ms metadata.extra.transport metadata.extra.response_size_bytes metadata.extra.status ' +
    'metadata.extra.jsonrpc_error_code metadata.extra.jsonrpc_error_message data.request data.response';
  expect(named((await it.events(3))[2] ?? {})).toEqual(members.split(' '));
});

test.each([
  [{ eventTypes: ['mcp_tool_cal'] }, 'unknown event type "mcp_tool_cal"; did you mean "mcp_tool_call"?'],
  [{ maxDataSize: -1 }, 'must be a whole number from 0 to 65536'],
  [{ maxDelegationDepth: 0 }, 'must be a whole number from 1 to 100'],
  [{ logfile: 'x' }, 'has an unknown key: "logfile"'],
  [3, 'must be an object'],
])('a configuration %j is refused', (config, why) => {
  const fail = (text: string): never => {
    throw new Error(text);
  };
  expect(() => auditShape(config, fail)).toThrow(why);
});
