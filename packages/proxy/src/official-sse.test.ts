import { once } from 'node:events';
import { createServer } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { expect, test } from 'vitest';
import type { HttpBackend } from './backend/backend.ts';
import { runningProxy } from './doubles/running-proxy.ts';

/** The official server of HTTP with SSE; its tool counts the calls of one session. */
async function officialServer(): Promise<AsyncDisposable & { readonly backend: HttpBackend }> {
  const sessions = new Map<string, SSEServerTransport>();
  const server = createServer((req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? '', 'http://server');
    if (req.method === 'GET' && pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', res);
      sessions.set(transport.sessionId, transport);
      const made = new McpServer({ name: 'older', version: '1' });
      let calls = 0;
      made.registerTool('count', { description: 'Counts' }, () => {
        calls += 1;
        return { content: [{ type: 'text', text: String(calls) }] };
      });
      void made.connect(transport);
      return;
    }
    const session = sessions.get(searchParams.get('sessionId') ?? '');
    if (session === undefined) res.writeHead(404).end();
    else void session.handlePostMessage(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    backend: { kind: 'sse', target: new URL(`http://127.0.0.1:${port}`) },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.each([
  ['relayed', {}],
  ['where a step looks inside', { steps: { telemetry: (_: unknown, next: () => Promise<void>) => next() } }],
])('official clients call an official server, %s, each in a session of its own', async (_how, options) => {
  await using server = await officialServer();
  await using proxy = await runningProxy(server, options);
  const clients = [1, 2].map(() => new Client({ name: 'test', version: '1' }));
  for (const client of clients) {
    await client.connect(new SSEClientTransport(new URL(proxy.url)));
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['count']);
    expect(await client.callTool({ name: 'count' })).toMatchObject({ content: [{ text: '1' }] });
  }
  for (const client of clients) {
    expect(await client.callTool({ name: 'count' })).toMatchObject({ content: [{ text: '2' }] });
    await client.close();
  }
  expect(await proxy.greet?.()).toMatchObject({ serverInfo: { name: 'older' } });
  expect(await proxy.ask?.('tools/list', {})).toContain('"name":"count"');
});
