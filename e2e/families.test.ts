import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  Client as ClientV2,
  SSEClientTransport as SseV2,
  StreamableHTTPClientTransport as HttpV2,
  type Transport as TransportV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SseV1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport as TransportV1 } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from '@skep/proxy/backend/backend.ts';
import type { OptionalSteps } from '@skep/proxy/call/chain.ts';
import { ownAuthority } from '@skep/proxy/doubles/own-authority.ts';
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

async function overHttp(command: readonly string[], kind: 'http' | 'sse' = 'http'): Promise<Server> {
  const server = await conformanceOverHttp(command);
  return {
    backend: { kind, target: new URL(new URL(server.url).origin) },
    [Symbol.dispose]: () => server[Symbol.dispose](),
  };
}

/** The same elsewhere: over TLS, at an address of its own. */
async function elsewhere(command: readonly string[], kind: 'http' | 'sse' = 'http'): Promise<Server> {
  const server = await conformanceOverHttp(command);
  const { host, hostname, port, pathname } = new URL(server.url);
  const authority = ownAuthority();
  const relay = createServer(authority, (req, res) => {
    const { url: at, method } = req;
    const headers = { ...req.headers, host };
    const asked = request({ hostname, port, path: at, method, headers }, (reply) => {
      res.writeHead(reply.statusCode ?? 502, reply.headers);
      res.flushHeaders();
      reply.pipe(res);
    });
    asked.on('error', () => res.destroy());
    res.once('close', () => asked.destroy());
    req.pipe(asked);
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  const { port: own } = relay.address() as AddressInfo;
  return {
    backend: {
      kind,
      target: new URL(`https://localhost:${own}${pathname}`),
      remote: { allowPrivate: true, ca: [authority.cert], headers: {} },
    },
    [Symbol.dispose]() {
      relay.closeAllConnections();
      relay.close();
      server[Symbol.dispose]();
    },
  };
}

const INSIDE: OptionalSteps = { authorization: (_call, next) => next() };

const SERVERS: readonly (readonly [string, () => Promise<Server>, OptionalSteps])[] = [
  ['legacy, stdio', async () => spawnedBackend(conformanceCommand('stdio')), {}],
  ['modern, stdio', async () => spawnedBackend(modernCommand('stdio')), {}],
  ['both, stdio', async () => spawnedBackend(modernCommand('stdio', 'both')), {}],
  ['legacy, HTTP relayed', () => overHttp(conformanceCommand('http')), {}],
  ['modern, HTTP relayed', () => overHttp(modernCommand('http')), {}],
  ['legacy, HTTP looked into', () => overHttp(conformanceCommand('http')), INSIDE],
  ['modern, HTTP looked into', () => overHttp(modernCommand('http')), INSIDE],
  ['legacy, elsewhere', () => elsewhere(conformanceCommand('http')), {}],
  ['modern, elsewhere', () => elsewhere(modernCommand('http')), {}],
  ['legacy, elsewhere, looked into', () => elsewhere(conformanceCommand('http')), INSIDE],
  ['modern, elsewhere, looked into', () => elsewhere(modernCommand('http')), INSIDE],
];

/** What a test does with a client, whatever its family. */
interface Used {
  tools(): Promise<readonly string[]>;
  call(name: string, onprogress?: () => void): Promise<unknown>;
  /** Resolves when the tools have changed. */
  readonly changed: Promise<void>;
  close(): Promise<void>;
}

async function withV1(url: string, open = (at: URL): TransportV1 => new HttpV1(at)): Promise<Used> {
  const { promise: changed, resolve } = Promise.withResolvers<void>();
  const client = new ClientV1({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
  await client.connect(open(new URL(url)));
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: (name, onprogress) =>
      client.callTool({ name, arguments: {} }, undefined, onprogress && { onprogress }),
    changed,
    close: () => client.close(),
  };
}

type Mode = NonNullable<NonNullable<ConstructorParameters<typeof ClientV2>[1]>['versionNegotiation']>['mode'];

async function withV2(
  url: string,
  mode?: Mode,
  open = (at: URL): TransportV2 => new HttpV2(at),
): Promise<Used> {
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
  await client.connect(open(new URL(url)));
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: (name, onprogress) => client.callTool({ name, arguments: {} }, onprogress && { onprogress }),
    changed,
    close: () => client.close(),
  };
}

const CLIENTS: readonly (readonly [string, (url: string) => Promise<Used>])[] = [
  ['v1', (url) => withV1(url)],
  ['v2, legacy', (url) => withV2(url)],
  ['v2, whatever there is', (url) => withV2(url, 'auto')],
  ['v2, modern', (url) => withV2(url, { pin: '2026-07-28' })],
];

/** Lists, calls, progress, a question of the server and a change of its tools. */
async function useAll(client: Used, hearsAtOnce = true): Promise<void> {
  expect(await client.tools()).toContain('test_simple_text');
  expect(await client.call('test_simple_text')).toMatchObject({ content: [{ type: 'text' }] });
  let steps = 0;
  await client.call('test_tool_with_progress', () => (steps += 1));
  if (hearsAtOnce) expect(steps).toBe(3);
  const asked = await client.call('test_input_required_result_elicitation');
  expect(JSON.stringify(asked)).toContain('Ada');
  await client.call('test_trigger_tool_change');
  await client.changed;
  await client.close();
}

describe.each(SERVERS)('a server that is %s', (_server, open, steps) => {
  test.each(CLIENTS)('serves the official client %s', async (_client, connect) => {
    using server = await open();
    const proxy = await startProxy({ ...SETTINGS, backend: server.backend, steps });
    try {
      await useAll(await connect(proxy.url));
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

const OLDER: readonly (readonly [string, () => Promise<Server>, OptionalSteps])[] = [
  ['legacy, stdio', async () => spawnedBackend(conformanceCommand('stdio')), {}],
  ['modern, stdio', async () => spawnedBackend(modernCommand('stdio')), {}],
  ['legacy, HTTP with SSE relayed', () => overHttp(conformanceCommand('sse'), 'sse'), {}],
  ['legacy, HTTP with SSE looked into', () => overHttp(conformanceCommand('sse'), 'sse'), INSIDE],
  ['legacy, HTTP with SSE elsewhere', () => elsewhere(conformanceCommand('sse'), 'sse'), {}],
];

// Its fixture tells progress in one piece with the answer, and on one stream for all these clients forget what they were about
// to hear when they have read the answer behind it.
const isSudden = (server: string): boolean => server === 'modern, stdio';

describe.each(OLDER)('over HTTP with SSE a server that is %s', (server, open, steps) => {
  const hearsAtOnce = !isSudden(server);
  test.each<[string, (url: string) => Promise<Used>]>([
    ['v1', (url) => withV1(url, (at) => new SseV1(at))],
    ['v2', (url) => withV2(url, undefined, (at) => new SseV2(at))],
  ])('serves the official legacy client %s', async (_client, connect) => {
    using running = await open();
    const proxy = await startProxy({ ...SETTINGS, backend: running.backend, mode: 'sse', steps });
    try {
      await useAll(await connect(proxy.url), hearsAtOnce);
    } finally {
      await proxy.close();
    }
  });
});
