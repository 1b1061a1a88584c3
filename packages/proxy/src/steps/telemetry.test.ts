import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { collectorOfFile } from '@skep/core/telemetry/collector.fixture.ts';
import type { Backend } from '../backend/backend.ts';
import type { OptionalSteps } from '../call/chain.ts';
import type { Step } from '../call/chain.ts';
import { ask, openStream, postJson } from '../doubles/http-client.ts';
import { modernRequest, modernScript } from '../doubles/modern.ts';
import { parsePrometheus, type Sample } from '../doubles/prometheus-text.ts';
import { newSession, runningProxy, type RunningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { scriptedServer, type Script } from '../doubles/scripted-server.ts';
import { META } from '../message/envelope.ts';
import type { ProxyTelemetry } from './telemetry/settings.ts';

interface Span {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status: { readonly code?: number };
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface RawSpan extends Omit<Span, 'attributes'> {
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

const collector = collectorOfFile();
const { received } = collector;

const settings = (given: Partial<ProxyTelemetry> = {}): ProxyTelemetry => ({
  serviceName: 'skep-test',
  serviceVersion: '1.2.3',
  endpoint: { url: collector.endpoint },
  headers: {},
  attributes: {},
  tracing: { sampling: 1 },
  metrics: 'on',
  scrapes: true,
  legacyNames: false,
  environment: {},
  ...given,
});

const measured = (
  server: { readonly backend: Backend },
  given: Partial<ProxyTelemetry> = {},
  steps: OptionalSteps = {},
) => runningProxy(server, { parts: { telemetry: settings(given) }, steps, osUser: 'alice' });

const call = (name: string, args: object = {}, meta?: object) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name, arguments: args, ...(meta && { _meta: meta }) },
});

/** `bad` is answered with an error, `unknown…` with one for wrong parameters, `fails` says so in its result. */
const script: Script = ({ id, method, params }, { say }) => {
  const name = String(params?.['name']);
  if (method !== 'tools/call') return undefined;
  const answer = (said: object): 'handled' => {
    say(JSON.stringify({ jsonrpc: '2.0', id, ...said }));
    return 'handled';
  };
  if (name === 'bad') return answer({ error: { code: -32000, message: 'hunter2' } });
  if (name.startsWith('unknown')) return answer({ error: { code: -32602, message: 'no such tool' } });
  if (name.startsWith('fails')) return answer({ result: { isError: true, content: [] } });
  return undefined;
};

/** What reached the collector, once the proxy has let go. */
async function spansAfter(proxy: RunningProxy): Promise<readonly Span[]> {
  await proxy.close();
  return received
    .splice(0)
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(({ body }): RawSpan[] => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans)
    .map((span) => ({
      ...span,
      attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
    }));
}

async function samples({ origin }: RunningProxy): Promise<readonly Sample[]> {
  const { status, headers, text } = await ask(`${origin}/metrics`, { method: 'GET', headers: {} });
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  return parsePrometheus(text);
}

/** Metrics are told a little later than their calls, on a busy machine much later. */
const PATIENT = { timeout: 10_000 };
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const parent = (flags: string, trace = TRACE) => `00-${trace}-b7ad6b7169203331-${flags}`;

describe('a span', () => {
  test('says what was called and how that ended, without a value, query or session id', async () => {
    const proxy = await measured(scriptedServer(), {
      environment: { REGION: 'eu' },
      attributes: { team: 'blue' },
    });
    const session = await newSession(proxy.url);
    const claimed = { 'X-MCP-Server-Name': 'other', 'X-MCP-Transport': 'other' };
    const headers = { ...session, ...claimed, 'User-Agent': 'agent/1', Authorization: 'Bearer hunter2' };
    await postJson(proxy.url, call('echo', { path: '/hunter2', password: 'hunter2', tags: [] }), headers);
    await vi.waitFor(
      async () =>
        expect((await samples(proxy)).some(({ name }) => name === 'skep_mcp_requests_total')).toBe(true),
      PATIENT,
    );
    await proxy.close();
    const body = received.map((one) => one.body).join('');
    expect(body).not.toContain('hunter2');
    expect(body).not.toContain(session['Mcp-Session-Id']);
    expect(body).toContain('{"key":"team","value":{"stringValue":"blue"}}');
    const spans = await spansAfter(proxy);
    expect(spans.map(({ name }) => name)).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/call echo',
    ]);
    expect(spans[0]?.attributes).toMatchObject({ 'mcp.client.name': 'test' });
    expect(spans[2]).toMatchObject({ kind: 2, status: {} });
    expect(spans[2]?.attributes).toMatchObject({
      'http.request.method': 'POST',
      'url.path': '/mcp',
      'url.full': proxy.url,
      'server.address': '127.0.0.1',
      'user_agent.original': 'agent/1',
      'http.response.status_code': 200,
      'mcp.method.name': 'tools/call',
      'rpc.system.name': 'jsonrpc',
      'jsonrpc.request.id': '7',
      'gen_ai.tool.name': 'echo',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.call.arguments': '{"path":"string","password":"string","tags":"array"}',
      'network.transport': 'pipe',
      'client.address': '127.0.0.1',
      'mcp.session.id': expect.stringMatching(/^[0-9a-f]{16}$/),
      'mcp.server.name': 'test',
      'environment.REGION': 'eu',
    });
    expect(Object.keys(spans[2]?.attributes ?? {}).filter((name) => name === 'http.method')).toEqual([]);
  });

  test('has the names of before too, where they are asked for', async () => {
    const proxy = await measured(scriptedServer(), { legacyNames: true });
    await postJson(proxy.url, call('echo'));
    const [span] = await spansAfter(proxy);
    expect(span?.attributes).toMatchObject({
      'http.method': 'POST',
      'http.target': '/mcp',
      'http.status_code': 200,
      'http.duration_ms': expect.anything(),
      'mcp.method': 'tools/call',
      'mcp.request.id': '7',
      'mcp.tool.name': 'echo',
      'mcp.transport': 'stdio',
      'rpc.system': 'jsonrpc',
      'rpc.service': 'mcp',
      'http.request.method': 'POST',
    });
  });

  const OF_ALL = [
    ['http.request.method', 'http.method'],
    ['url.full', 'http.url'],
    ['url.scheme', 'http.scheme'],
    ['url.path', 'http.target'],
    ['server.address', 'http.host'],
    ['user_agent.original', 'http.user_agent'],
    ['http.request.body.size', 'http.request_content_length'],
    ['http.response.status_code', 'http.status_code'],
    ['http.response.body.size', 'http.response_content_length'],
    ['mcp.method.name', 'mcp.method'],
    ['rpc.system.name', 'rpc.system'],
    ['jsonrpc.request.id', 'mcp.request.id'],
  ] as const;
  const WITHOUT_ALIAS = [
    'network.transport',
    'network.protocol.name',
    'network.protocol.version',
    'client.address',
    'client.port',
    'mcp.server.name',
    'mcp.protocol.version',
    'jsonrpc.protocol.version',
  ];
  test.each<[string, object, readonly (readonly [string, string])[], readonly string[]]>([
    [
      'tools/call',
      { name: 'x', arguments: {} },
      [
        ['gen_ai.tool.name', 'mcp.tool.name'],
        ['gen_ai.tool.call.arguments', 'mcp.tool.arguments'],
      ],
      ['gen_ai.operation.name'],
    ],
    ['prompts/get', { name: 'x' }, [['gen_ai.prompt.name', 'mcp.prompt.name']], []],
    ['resources/read', { uri: 'file:///x' }, [['mcp.resource.uri', 'mcp.resource.id']], []],
    ['x/y', {}, [], ['error.type']],
  ])(
    'of %s has these names, and beside them those of before where they are asked for',
    async (method, params, pairs, alone) => {
      const fails: Script = ({ id, method: asked }, { say }) => {
        if (asked !== 'x/y') return undefined;
        say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'x' } }));
        return 'handled';
      };
      const namesOf = async (legacyNames: boolean): Promise<readonly string[]> => {
        const proxy = await measured(scriptedServer(fails), { legacyNames });
        const headers = { 'User-Agent': 'agent/1', 'MCP-Protocol-Version': '2025-11-25' };
        await postJson(proxy.url, { jsonrpc: '2.0', id: 7, method, params }, headers);
        const [span] = await spansAfter(proxy);
        return Object.keys(span?.attributes ?? {}).toSorted();
      };
      const all = [...OF_ALL, ...pairs];
      const own = [...all.map(([name]) => name), ...WITHOUT_ALIAS, ...alone];
      expect(await namesOf(false)).toEqual(own.toSorted());
      const before = [...all.map(([, name]) => name), 'http.duration_ms', 'mcp.transport', 'rpc.service'];
      expect(await namesOf(true)).toEqual([...own, ...before].toSorted());
    },
  );

  test('names the client of a modern request, which says with each who it is', async () => {
    const proxy = await measured(scriptedServer(modernScript()));
    const { body, headers } = modernRequest(
      'tools/call',
      { name: 'x' },
      { [META.clientInfo]: { name: 'new', version: '2' } },
    );
    await postJson(proxy.url, body, headers);
    expect((await spansAfter(proxy)).at(-1)?.attributes).toMatchObject({ 'mcp.client.name': 'new' });
  });

  test.each(['stdio', 'http'] as const)('tells failures apart over %s', async (kind) => {
    await using http = await scriptedHttpServer('http', script);
    const proxy = await measured(kind === 'http' ? http : scriptedServer(script));
    const session = await newSession(proxy.url);
    for (const name of ['echo', 'bad', 'fails']) await postJson(proxy.url, call(name), session);
    await postJson(proxy.url, call('echo'), { 'Mcp-Session-Id': 'none' });
    const spans = (await spansAfter(proxy)).slice(2);
    expect(spans.map(({ attributes }) => attributes['error.type'])).toEqual([
      undefined,
      '-32000',
      'tool_error',
      '404',
    ]);
    expect(spans.every(({ status }) => status.code !== 2)).toBe(true);
  });

  test('is marked where the proxy itself fails', async () => {
    const http = await scriptedHttpServer('http');
    const proxy = await measured(http);
    await http[Symbol.asyncDispose]();
    expect((await postJson(proxy.url, call('echo'))).status).toBe(502);
    expect(await spansAfter(proxy)).toMatchObject([
      { status: { code: 2 }, attributes: { 'error.type': '502' } },
    ]);
  });

  test('joins the trace of its client, whose message counts before its headers, and hands it on', async () => {
    await using http = await scriptedHttpServer('http');
    const proxy = await measured(http);
    const session = await newSession(proxy.url);
    const before = http.headers.length;
    const other = '1af7651916cd43dd8448eb211c80319c';
    await postJson(proxy.url, call('a'), { ...session, traceparent: parent('01') });
    await postJson(proxy.url, call('b', {}, { traceparent: parent('01', other) }), {
      ...session,
      traceparent: parent('01'),
    });
    const spans = (await spansAfter(proxy)).slice(2);
    expect(spans.map(({ traceId, parentSpanId }) => [traceId, parentSpanId])).toEqual([
      [TRACE, 'b7ad6b7169203331'],
      [other, 'b7ad6b7169203331'],
    ]);
    const told = spans.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
    expect(http.headers.slice(before).map(({ traceparent }) => traceparent)).toEqual(told);
    // What its client said in the message as well is said there of the same span.
    const [without, within] = http.received.filter(({ method }) => method === 'tools/call');
    expect(without?.params).not.toHaveProperty('_meta');
    expect(within?.params?.['_meta']).toEqual({ traceparent: told[1] });
  });

  test('is told to a server whose bytes are relayed in notifications that name another', async () => {
    await using http = await scriptedHttpServer('http');
    const proxy = await measured(http);
    const session = await newSession(proxy.url);
    const _meta = { traceparent: parent('01'), own: 1 };
    const notice = (params: object): object => ({ jsonrpc: '2.0', method: 'notifications/x', params });
    await postJson(proxy.url, notice({ _meta }), session);
    await postJson(proxy.url, notice({ n: 1 }), session);
    const [named] = (await spansAfter(proxy)).slice(2);
    expect(http.received.slice(2).map(({ params }) => params)).toEqual([
      { _meta: { traceparent: `00-${TRACE}-${named?.spanId}-01`, own: 1 } },
      { n: 1 },
    ]);
  });

  test.each(['stdio', 'http whose messages are read'] as const)(
    'is what a server over %s hears of in its message, beside all else that is there',
    async (kind) => {
      await using http = await scriptedHttpServer('http');
      const server = kind === 'stdio' ? scriptedServer() : http;
      const proxy = await measured(
        server,
        {},
        kind === 'stdio' ? {} : { 'mutating-webhook': (_, next) => next() },
      );
      const session = await newSession(proxy.url);
      const stale = { traceparent: parent('01'), tracestate: 'a=1', progressToken: 'p' };
      const headers = { ...session, baggage: 'a=1' };
      await postJson(proxy.url, call('a', { n: 1 }, { ...stale, baggage: 'b=2' }), headers);
      await postJson(proxy.url, { jsonrpc: '2.0', id: 8, method: 'x/bare' }, headers);
      await postJson(proxy.url, call('b', {}, { baggage: null }), headers);
      const spans = (await spansAfter(proxy)).slice(2);
      expect(spans.map(({ traceId }) => traceId)[0]).toBe(TRACE);
      const heard = server.received.filter(({ method }) => method === 'tools/call' || method === 'x/bare');
      expect(heard.map(({ params }) => params)).toMatchObject([
        {
          name: 'a',
          arguments: { n: 1 },
          _meta: {
            traceparent: `00-${TRACE}-${spans[0]?.spanId}-01`,
            tracestate: 'a=1',
            baggage: 'b=2',
            progressToken: expect.anything(),
          },
        },
        { _meta: { traceparent: `00-${spans[1]?.traceId}-${spans[1]?.spanId}-01`, baggage: 'a=1' } },
        { _meta: { baggage: 'a=1' } },
      ]);
    },
  );

  test.each([
    ['none of its own', 0, undefined, 0],
    ['all of its own', 1, undefined, 1],
    ['those that its client samples, whatever the share', 0, parent('01'), 1],
    ['none that its client does not', 1, parent('00'), 0],
  ])('is made of %s', async (_name, sampling, traceparent, count) => {
    const proxy = await measured(scriptedServer(), { tracing: { sampling } });
    await postJson(proxy.url, call('echo'), traceparent === undefined ? {} : { traceparent });
    expect(await spansAfter(proxy)).toHaveLength(count);
  });

  test('of a request without a method has its path for a name, without the id of a session in it', async () => {
    const proxy = await measured(scriptedServer());
    const headers = await newSession(proxy.url);
    await ask(proxy.url, { method: 'DELETE', headers });
    await ask(`${proxy.origin}/0af7651916cd43dd8448eb211c80319c/x?key=1`, { method: 'DELETE', headers });
    const names = (await spansAfter(proxy)).slice(2).map(({ name }) => name);
    expect(names).toEqual(['HTTP /mcp', expect.stringMatching(/^HTTP \/[0-9a-f]{16}\/x$/u)]);
  });

  test('of a stream ends when that opens', async () => {
    const proxy = await measured(scriptedServer());
    const headers = { ...(await newSession(proxy.url)), Accept: 'text/event-stream' };
    const stream = await openStream(proxy.url, { method: 'GET', headers });
    const spans = await spansAfter(proxy);
    stream.abort();
    expect(spans.at(-1)).toMatchObject({ name: 'sse.connection_established' });
  });
});

describe('the metrics', () => {
  const valueOf = (
    all: readonly Sample[],
    name: string,
    labels: Readonly<Record<string, string>>,
  ): number | undefined =>
    all.find(
      (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value),
    )?.value;

  test.each(['stdio', 'http'] as const)(
    'count calls by what they were and how they ended, over %s',
    async (kind) => {
      await using http = await scriptedHttpServer('http', script);
      await using proxy = await measured(kind === 'http' ? http : scriptedServer(script), {
        tracing: 'off',
        metrics: 'scraped',
      });
      const session = await newSession(proxy.url);
      for (const name of ['echo', 'echo', 'bad', 'fails', 'unknown-1', 'unknown-2'])
        await postJson(proxy.url, call(name), session);
      const transport = kind === 'http' ? 'streamable-http' : 'stdio';
      await vi.waitFor(async () => {
        const all = await samples(proxy);
        const own = {
          server: 'test',
          transport,
          method: 'POST',
          status_code: '200',
          status: 'success',
          mcp_method: 'tools/call',
        };
        expect(valueOf(all, 'skep_mcp_requests_total', { ...own, mcp_resource_id: 'echo' })).toBe(2);
        expect(
          valueOf(all, 'skep_mcp_request_duration_seconds_count', { ...own, mcp_resource_id: 'echo' }),
        ).toBe(2);
        expect(
          valueOf(all, 'skep_mcp_request_duration_seconds_bucket', {
            ...own,
            mcp_resource_id: 'echo',
            le: '300',
          }),
        ).toBe(2);
        const tools = all.filter(({ name }) => name === 'skep_mcp_tool_calls_total');
        expect(tools.map(({ labels, value }) => [labels['tool'], labels['status'], value])).toEqual([
          ['echo', 'success', 2],
          ['echo', 'error', 0],
          ['bad', 'success', 0],
          ['bad', 'error', 1],
          ['fails', 'success', 0],
          ['fails', 'error', 1],
          ['_other', 'success', 0],
          ['_other', 'error', 2],
        ]);
        const operation = { mcp_method_name: 'tools/call', gen_ai_tool_name: 'bad', error_type: '-32000' };
        expect(valueOf(all, 'mcp_server_operation_duration_seconds_count', operation)).toBe(1);
      }, PATIENT);
      expect(received).toEqual([]);
    },
  );

  test('have the buckets of calls that take from ten milliseconds to five minutes', async () => {
    await using proxy = await measured(scriptedServer(), { tracing: 'off', metrics: 'scraped' });
    await postJson(proxy.url, call('echo'));
    const all = await samples(proxy);
    const bounds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300].map(String);
    for (const name of ['skep_mcp_request_duration_seconds', 'mcp_server_operation_duration_seconds'])
      expect(all.filter((one) => one.name === `${name}_bucket`).map(({ labels }) => labels['le'])).toEqual([
        ...bounds,
        '+Inf',
      ]);
    const operation = all.find(({ name }) => name === 'mcp_server_operation_duration_seconds_count');
    expect(operation?.labels).toMatchObject({
      mcp_method_name: 'tools/call',
      jsonrpc_protocol_version: '2.0',
      network_transport: 'pipe',
      network_protocol_name: 'http',
      network_protocol_version: '1.1',
      gen_ai_tool_name: 'echo',
      gen_ai_operation_name: 'execute_tool',
    });
  });

  test('count streams while they are open', async () => {
    await using proxy = await measured(scriptedServer(), { tracing: 'off', metrics: 'scraped' });
    const headers = { ...(await newSession(proxy.url)), Accept: 'text/event-stream' };
    const open = async () =>
      valueOf(await samples(proxy), 'skep_mcp_active_connections', {
        server: 'test',
        transport: 'stdio',
        connection_type: 'sse',
      });
    const stream = await openStream(proxy.url, { method: 'GET', headers });
    await vi.waitFor(async () => expect(await open()).toBe(1), PATIENT);
    stream.abort();
    await vi.waitFor(async () => expect(await open()).toBe(0), PATIENT);
    expect(
      (await samples(proxy)).filter(
        ({ name, labels }) => name.includes('duration') && labels['method'] === 'GET',
      ),
    ).toEqual([]);
  });

  test('count no stream whose client has gone before', async () => {
    const through = Promise.withResolvers<void>();
    const audit: Step = async (call, next) => {
      if (call.req.method !== 'GET') return next();
      call.req.socket.destroy();
      await once(call.res, 'close');
      await next();
      return through.resolve();
    };
    const telemetry = settings({ tracing: 'off', metrics: 'scraped' });
    await using proxy = await runningProxy(scriptedServer(), { parts: { telemetry }, steps: { audit } });
    const headers = { ...(await newSession(proxy.url)), Accept: 'text/event-stream' };
    await expect(openStream(proxy.url, { method: 'GET', headers })).rejects.toThrow();
    await through.promise;
    const counted = (await samples(proxy)).filter(({ name }) => name === 'skep_mcp_active_connections');
    expect(counted.map(({ value }) => value)).toEqual([]);
  });

  test('stay few, whatever clients and servers write', async () => {
    await using proxy = await measured(scriptedServer(script), { tracing: 'off', metrics: 'scraped' });
    const session = await newSession(proxy.url);
    for (let at = 0; at < 120; at += 1) await postJson(proxy.url, call(`fails"\\\n${at}`), session);
    await postJson(proxy.url, { jsonrpc: '2.0', id: 1, method: `made/up` }, session);
    await postJson(proxy.url, call(`fails${'ü'.repeat(400)}`), session);
    const all = await samples(proxy);
    const tools = new Set(
      all.filter(({ name }) => name === 'skep_mcp_tool_calls_total').map(({ labels }) => labels['tool']),
    );
    expect(tools.size).toBe(101);
    expect(tools).toContain('_other');
    expect(tools).toContain('fails"\\\n0');
    expect(new Set(all.flatMap(({ labels }) => labels['mcp_method'] ?? []))).toEqual(
      new Set(['initialize', 'notifications/initialized', 'tools/call', '_OTHER']),
    );
  });

  test('are for nobody where they are not asked for, nor for pages of others', async () => {
    await using without = await measured(scriptedServer(), { scrapes: false });
    await using proxy = await measured(scriptedServer());
    const get = (url: string, headers = {}) => ask(`${url}/metrics`, { method: 'GET', headers });
    expect(await get(without.origin)).toMatchObject({
      status: 404,
      headers: { 'content-type': 'text/plain; charset=utf-8' },
    });
    expect((await get(proxy.origin, { Host: 'evil.example' })).status).toBe(403);
    expect((await ask(`${proxy.origin}/metrics`, { method: 'POST', headers: {} })).status).toBe(405);
    expect((await get(proxy.origin)).status).toBe(200);
  });
});

test('the collector is shown the headers that it was given, and whoever hosts the proxy is no client', async () => {
  received.length = 0;
  const proxy = await measured(scriptedServer(), { headers: { 'X-Key': 'k' } });
  await postJson(proxy.url, call('own'), { 'X-Skep-Pass': proxy.pass ?? '' });
  await postJson(proxy.url, call('theirs'));
  await proxy.close();
  expect(new Set(received.map(({ key }) => key))).toEqual(new Set(['k']));
  expect((await spansAfter(proxy)).map(({ name }) => name)).toEqual(['tools/call theirs']);
  expect(proxy.toolCounts?.()).toMatchObject([{ name: 'theirs', calls: 1, errors: 0 }]);
});

test('a collector that does not answer holds up no call, and no end for long', async () => {
  const mute = createServer(() => {}).listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const address = mute.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  const proxy = await measured(scriptedServer(), { endpoint: { url } });
  expect((await postJson(proxy.url, call('echo'))).status).toBe(200);
  const before = performance.now();
  await proxy.close();
  expect(performance.now() - before).toBeLessThan(8_000);
  mute.closeAllConnections();
  mute.close();
}, 20_000);
