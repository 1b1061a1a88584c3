import {
  Client as ClientV2,
  SSEClientTransport as SseV2,
  StreamableHTTPClientTransport as HttpV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SseV1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from '@skep/proxy/backend/backend.ts';
import type { OptionalSteps } from '@skep/proxy/call/chain.ts';
import { SETTINGS } from '@skep/proxy/doubles/running-proxy.ts';
import { startProxy } from '@skep/proxy/start.ts';
import {
  conformanceCommand,
  conformanceOverHttp,
  modernCommand,
  spawnedBackend,
} from './fixtures/spawned-server.ts';

// Official clients of both families against servers of both, over every way to a server.

interface Server extends Disposable {
  readonly backend: Backend;
}

async function overHttp(command: readonly string[]): Promise<Server> {
  const server = await conformanceOverHttp(command);
  return {
    backend: { kind: 'http', target: new URL(new URL(server.url).origin) },
    [Symbol.dispose]: () => server[Symbol.dispose](),
  };
}

const INSIDE: OptionalSteps = { audit: (_call, next) => next() };

const SERVERS: readonly (readonly [string, () => Promise<Server>, OptionalSteps])[] = [
  ['legacy, stdio', async () => spawnedBackend(conformanceCommand('stdio')), {}],
  ['modern, stdio', async () => spawnedBackend(modernCommand('stdio')), {}],
  ['both, stdio', async () => spawnedBackend(modernCommand('stdio', 'both')), {}],
  ['legacy, HTTP relayed', () => overHttp(conformanceCommand('http')), {}],
  ['modern, HTTP relayed', () => overHttp(modernCommand('http')), {}],
  ['legacy, HTTP looked into', () => overHttp(conformanceCommand('http')), INSIDE],
  ['modern, HTTP looked into', () => overHttp(modernCommand('http')), INSIDE],
];

/** What a test does with a client, whatever its family. */
interface Used {
  tools(): Promise<readonly string[]>;
  call(name: string, onprogress?: () => void): Promise<unknown>;
  /** Resolves when the tools have changed. */
  readonly changed: Promise<void>;
  close(): Promise<void>;
}

async function withV1(url: string): Promise<Used> {
  const { promise: changed, resolve } = Promise.withResolvers<void>();
  const client = new ClientV1({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
  await client.connect(new HttpV1(new URL(url)));
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: (name, onprogress) =>
      client.callTool({ name, arguments: {} }, undefined, onprogress && { onprogress }),
    changed,
    close: () => client.close(),
  };
}

type Mode = NonNullable<NonNullable<ConstructorParameters<typeof ClientV2>[1]>['versionNegotiation']>['mode'];

async function withV2(url: string, mode?: Mode): Promise<Used> {
  const { promise: changed, resolve } = Promise.withResolvers<void>();
  const client = new ClientV2(
    { name: 'v2', version: '1' },
    {
      capabilities: { elicitation: {} },
      listChanged: { tools: { onChanged: () => resolve() } },
      ...(mode !== undefined && { versionNegotiation: { mode } }),
    },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
  await client.connect(new HttpV2(new URL(url)));
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: (name, onprogress) => client.callTool({ name, arguments: {} }, onprogress && { onprogress }),
    changed,
    close: () => client.close(),
  };
}

const CLIENTS: readonly (readonly [string, (url: string) => Promise<Used>])[] = [
  ['v1', withV1],
  ['v2, legacy', withV2],
  ['v2, whatever there is', (url) => withV2(url, 'auto')],
  ['v2, modern', (url) => withV2(url, { pin: '2026-07-28' })],
];

describe.each(SERVERS)('a server that is %s', (_server, open, steps) => {
  test.each(CLIENTS)('serves the official client %s', async (_client, connect) => {
    using server = await open();
    const proxy = await startProxy({ ...SETTINGS, backend: server.backend, steps });
    try {
      const client = await connect(proxy.url);
      expect(await client.tools()).toContain('test_simple_text');
      expect(await client.call('test_simple_text')).toMatchObject({ content: [{ type: 'text' }] });
      let steps = 0;
      await client.call('test_tool_with_progress', () => (steps += 1));
      expect(steps).toBe(3);
      const asked = await client.call('test_input_required_result_elicitation');
      expect(JSON.stringify(asked)).toContain('Ada');
      await client.call('test_trigger_tool_change');
      await client.changed;
      await client.close();
    } finally {
      await proxy.close();
    }
  });
});

// Such a server has no sessions for legacy clients, so it cannot ask them.
test.each(CLIENTS)(
  'a server of both families over HTTP is relayed to the official client %s',
  async (_client, connect) => {
    using server = await overHttp(modernCommand('http', 'both'));
    const proxy = await startProxy({ ...SETTINGS, backend: server.backend });
    try {
      const client = await connect(proxy.url);
      expect(await client.tools()).toContain('test_simple_text');
      expect(await client.call('test_simple_text')).toMatchObject({ content: [{ type: 'text' }] });
      await client.close();
    } finally {
      await proxy.close();
    }
  },
);

describe('HTTP with SSE', () => {
  test.each([
    ['v1', (url: URL) => new ClientV1({ name: 'v1', version: '1' }).connect(new SseV1(url))],
    ['v2', (url: URL) => new ClientV2({ name: 'v2', version: '1' }).connect(new SseV2(url))],
  ])('serves the legacy client %s, also of a modern server', async (_client, connect) => {
    using server = spawnedBackend(modernCommand('stdio'));
    const proxy = await startProxy({ ...SETTINGS, backend: server.backend, mode: 'sse' });
    try {
      await connect(new URL(proxy.url));
    } finally {
      await proxy.close();
    }
  });
});
