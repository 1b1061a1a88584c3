import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from './backend/backend.ts';
import type { Reply } from './call/call.ts';
import type { OptionalSteps, Step } from './call/chain.ts';
import { ask, openStream, postJson } from './doubles/http-client.ts';
import { newSession, runningProxy, type RunningProxy } from './doubles/running-proxy.ts';
import { scriptedHttpServer, type ScriptedHttpServer } from './doubles/scripted-http-server.ts';
import { scriptedServer, type Script, type ScriptedServer } from './doubles/scripted-server.ts';

type Server = Pick<ScriptedServer, 'received' | 'say'> & {
  readonly backend: Backend;
} & Partial<AsyncDisposable>;

/** Tells progress, asks the client, and answers when the client has answered. */
const script: Script = (message, { say, reply, heard }) => {
  if (message.method !== 'tools/call') return message.id === 'q' ? 'handled' : undefined;
  const progressToken = Object(message.params)['_meta']?.progressToken;
  say(
    JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: 1 },
    }),
  );
  say(
    '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}',
  );
  void heard(({ id }) => id === 'q').then(() => reply(message, { content: [{ type: 'text', text: 'raw' }] }));
  return 'handled';
};

const COMBINATIONS: readonly [string, 'streamable-http' | 'sse', () => Promise<Server> | Server][] = [
  ['streamable HTTP in front of stdio', 'streamable-http', () => scriptedServer(script)],
  ['SSE in front of stdio', 'sse', () => scriptedServer(script)],
  ['streamable HTTP in front of itself', 'streamable-http', () => scriptedHttpServer('http', script)],
  ['SSE in front of itself', 'sse', () => scriptedHttpServer('sse', script)],
];

async function connected(proxy: RunningProxy, mode: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  const url = new URL(proxy.url);
  await client.connect(mode === 'sse' ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url));
  return client;
}

const nameOf = ({ message, request }: Reply): string =>
  message.kind === 'response' ? `answer to ${request?.method}` : message.method;

describe.each(COMBINATIONS)('%s', (_name, mode, open) => {
  test('a hook sees each message of the server once, and what it gives back is what the client gets', async () => {
    const server = await open();
    const seen: string[] = [];
    const hooking: Step = (call, next) => {
      call.replyHooks.push((reply) => {
        seen.push(nameOf(reply));
        return { ...reply.message, text: reply.message.text.replace('"raw"', '"as the hook has it"') };
      });
      return next();
    };
    {
      await using proxy = await runningProxy(server, { mode, steps: { 'tool-filter': hooking } });
      const client = await connected(proxy, mode);
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'decline' }));
      const changed = new Promise<void>((resolve) => {
        client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
      });
      const progress: unknown[] = [];
      const answer = await client.callTool({ name: 'x' }, undefined, {
        onprogress: (one) => void progress.push(one),
      });
      expect(answer).toMatchObject({ content: [{ text: 'as the hook has it' }] });
      expect(progress).toEqual([{ progress: 1 }]);
      expect(seen).toEqual([
        'answer to initialize',
        'notifications/progress',
        'elicitation/create',
        'answer to tools/call',
      ]);
      // A server of HTTP may hear late that somebody listens.
      const told = setInterval(
        () => server.say('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'),
        20,
      );
      await changed;
      clearInterval(told);
      await client.close();
    }
    await server[Symbol.asyncDispose]?.();
  });
});

describe('a server of streamable HTTP, where a step looks inside', () => {
  const inside = { steps: { authorization: ((_call, next) => next()) satisfies Step } };

  test('begins a session that it has forgotten anew, once, and the call is answered', async () => {
    await using server: ScriptedHttpServer = await scriptedHttpServer('http');
    await using proxy = await runningProxy(server, inside);
    const session = await newSession(proxy.url);
    await server.heard(({ method }) => method === 'notifications/initialized');
    server.forget();
    const answer = await postJson(proxy.url, { jsonrpc: '2.0', id: 9, method: 'tools/list' }, session);
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.text).toContain('"id":9,"result"');
    expect(server.received.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
      'initialize',
      'notifications/initialized',
      'tools/list',
    ]);
  });

  test('keeps no session of a client that has ended its own', async () => {
    await using server = await scriptedHttpServer('http');
    await using proxy = await runningProxy(server, inside);
    const session = await newSession(proxy.url);
    expect(server.sessions).toBe(1);
    await ask(proxy.url, { method: 'DELETE', headers: session });
    await expect.poll(() => server.sessions).toBe(0);
  });
});

test('where no step looks inside, the stream of an SSE server is relayed, with its address under the prefix', async () => {
  await using server = await scriptedHttpServer('sse');
  await using proxy = await runningProxy(server, { endpointPrefix: '/own' });
  expect(proxy.url).toBe(`${proxy.origin}/sse`);
  const stream = await openStream(proxy.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
  const endpoint = await stream.next();
  expect(endpoint?.data).toMatch(/^\/own\/messages\?sid=[0-9a-f-]{36}$/);
  const to = new URL((endpoint?.data ?? '').replace('/own', ''), proxy.origin).href;
  expect((await postJson(to, { jsonrpc: '2.0', id: 1, method: 'x/y' })).status).toBe(202);
  expect((await stream.next())?.data).toBe('{"jsonrpc":"2.0","id":1,"result":{"echo":null}}');
  stream.abort();
  expect(await proxy.greet?.()).toMatchObject({ serverInfo: { name: 'scripted' } });
});

describe('a server without sessions', () => {
  test.each([
    ['whose bytes are relayed', {}],
    ['whose messages are read', { 'mutating-webhook': (_call, next) => next() } satisfies OptionalSteps],
  ] as const)('%s takes POST alone', async (_name, steps) => {
    await using server = await scriptedHttpServer('http');
    await using proxy = await runningProxy(server, { stateless: true, steps });
    for (const method of ['GET', 'HEAD', 'DELETE']) {
      const answer = await ask(proxy.url, { method, headers: { Accept: 'text/event-stream' } });
      expect([answer.status, answer.headers['allow']]).toEqual([405, 'POST, OPTIONS']);
    }
    expect(server.headers).toHaveLength(0);
    const session = await newSession(proxy.url);
    const called = await postJson(proxy.url, { jsonrpc: '2.0', id: 1, method: 'x/y' }, session);
    expect(called.status).toBe(200);
  });

  test('is looked at with a ping', async () => {
    await using server = await scriptedHttpServer('http');
    await using proxy = await runningProxy(server, { stateless: true, healthIntervalMs: 10 });
    await newSession(proxy.url);
    // The first is the handshake of the client.
    const withoutSession = () => server.headers.filter((headers) => !('mcp-session-id' in headers));
    await expect.poll(() => withoutSession().length).toBeGreaterThan(1);
    for (const headers of withoutSession()) expect(headers['content-type']).toBe('application/json');
  });
});

test('a server that speaks HTTP decides itself which revisions it takes, unless that is for the proxy', async () => {
  await using server = await scriptedHttpServer('http');
  const opened = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} };
  for (const [strictVersions, status] of [
    [false, 200],
    [true, 400],
  ] as const) {
    await using proxy = await runningProxy(server, { strictVersions });
    expect((await postJson(proxy.url, opened, { 'MCP-Protocol-Version': '2099-01-01' })).status).toBe(status);
  }
});
