import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import type { Backend } from './backend/backend.ts';
import { runningProxy } from './doubles/running-proxy.ts';
import { scriptedServer } from './doubles/scripted-server.ts';
import { isCall } from './doubles/started-mux.ts';

/** A server whose one call is answered when `finish` says so. */
interface SlowServer extends AsyncDisposable {
  readonly backend: Backend;
  readonly called: Promise<void>;
  readonly finish: () => void;
  readonly calls: () => number;
}

/** Keeps what its streams said, as the official example does. */
function keptEvents(): EventStore {
  const kept: { readonly id: string; readonly stream: string; readonly message: JSONRPCMessage }[] = [];
  return {
    async storeEvent(stream, message) {
      const id = randomUUID();
      kept.push({ id, stream, message });
      return id;
    },
    async replayEventsAfter(last, { send }) {
      const at = kept.findIndex(({ id }) => id === last);
      const stream = kept[at]?.stream ?? '';
      for (const one of kept.slice(at + 1)) if (one.stream === stream) await send(one.id, one.message);
      return stream;
    },
  };
}

async function overHttp(): Promise<SlowServer> {
  const [called, finished] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let calls = 0;
  const made = new McpServer({ name: 'slow', version: '1' });
  made.registerTool('wait', { description: 'Waits' }, async () => {
    calls += 1;
    called.resolve();
    await finished.promise;
    return { content: [{ type: 'text', text: 'done' }] };
  });
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: keptEvents(),
  });
  await made.connect(transport);
  const server = createServer((req, res) => void transport.handleRequest(req, res)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    backend: { kind: 'http', target: new URL(`http://127.0.0.1:${port}`) },
    called: called.promise,
    finish: () => finished.resolve(),
    calls: () => calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function overPipe(): Promise<SlowServer> {
  const called = Promise.withResolvers<void>();
  let answer = (): void => {};
  const server = scriptedServer((message, { reply }) => {
    if (!isCall(message)) return undefined;
    answer = () => reply(message, { content: [{ type: 'text', text: 'done' }] });
    called.resolve();
    return 'handled';
  });
  return {
    backend: server.backend,
    called: called.promise,
    finish: () => answer(),
    calls: () => server.received.filter(isCall).length,
    async [Symbol.asyncDispose]() {},
  };
}

const inside = { steps: { authorization: (_: unknown, next: () => Promise<void>) => next() } };

test.each([
  ['over a pipe', overPipe, {}],
  ['over HTTP, relayed', overHttp, {}],
  ['over HTTP, where a step looks inside', overHttp, inside],
])(
  'the answer to a call of a server %s comes on another stream when the first was cut',
  async (_how, open, options) => {
    await using server = await open();
    await using proxy = await runningProxy(server, options);
    const cut = new AbortController();
    const ids: string[] = [];
    // The official client reads on with `Last-Event-ID` when a stream that told ids is cut.
    const transport = new StreamableHTTPClientTransport(new URL(proxy.url), {
      reconnectionOptions: {
        initialReconnectionDelay: 1,
        maxReconnectionDelay: 10,
        reconnectionDelayGrowFactor: 1,
        maxRetries: 5,
      },
      fetch: async (url, init) => {
        const last = new Headers(init?.headers).get('last-event-id');
        if (last !== null) ids.push(last);
        const isCallOf = typeof init?.body === 'string' && init.body.includes('tools/call');
        if (!isCallOf) return fetch(url, init);
        const response = await fetch(url, init);
        const body = response.body?.pipeThrough(new TransformStream(), { signal: cut.signal });
        return new Response(body ?? null, response);
      },
    });
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(transport);
    const told = Promise.withResolvers<void>();
    const onresumptiontoken = (): void => told.resolve();
    const answer = client.callTool({ name: 'wait' }, undefined, { onresumptiontoken });
    await server.called;
    // The stream has said what it is to be resumed by.
    await told.promise;
    cut.abort(new Error('cut'));
    await expect.poll(() => ids.length, { timeout: 5_000 }).toBeGreaterThan(0);
    server.finish();
    expect(await answer).toMatchObject({ content: [{ text: 'done' }] });
    expect(server.calls()).toBe(1);
    await client.close();
  },
);
