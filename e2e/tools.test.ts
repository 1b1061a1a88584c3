import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundled } from './fixtures/bundled.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// Clients see the tools that --tools chose, under the names that --tools-override gave; the official client calls.

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-tools';
const OVER_HTTP = ['--transport', 'streamable-http', '--target-port', '3000'];
const OVER_SSE = ['--transport', 'sse', '--target-port', '3000'];

async function connected(url: string, older: boolean): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = older
    ? new SSEClientTransport(new URL(url))
    : new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  return client;
}

describe.skipIf(!sandbox.available)(title('the tools that clients see', sandbox), () => {
  let registry: NpmRegistry;
  let user: TestUser;
  let overrides: string;
  const written = (toolsOverride: object): void =>
    writeFileSync(overrides, JSON.stringify({ toolsOverride }));

  beforeAll(async () => {
    registry = await npmRegistryWith(PACKAGE, await bundled('tools-server.ts'));
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    overrides = path.join(user.dir, 'overrides.json');
  });
  afterAll(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
  });

  test.each([
    ['stdio', [], false],
    ['stdio in front of the older transport', ['--proxy-mode', 'sse'], true],
    ['streamable HTTP', OVER_HTTP, false],
    ['HTTP with SSE', OVER_SSE, true],
  ])('of a server over %s', async (how, flags, older) => {
    const name = `tools-${how.length}`;
    written({ read: { name: 'look', description: 'Looks' }, delete: { description: 'Deletes it' } });
    const chosen = ['--tools', 'look, delete', '--tools', 'change,wirte', '--tools-override', overrides];
    const ran = await user.skep(['run', `npx://${PACKAGE}`, '--name', name, ...flags, ...chosen]);
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stderr).toContain(
      'the server has no tool "wirte", which --tools names; did you mean "write"?',
    );
    const client = await connected(ran.stdout.trim(), older);
    const first = await client.listTools();
    const inputSchema = { type: 'object' };
    expect(first).toEqual({
      tools: [{ name: 'look', description: 'Looks', inputSchema, _meta: { own: 'read' } }],
      nextCursor: 'second',
      _meta: { page: 1 },
    });
    const second = await client.listTools({ cursor: 'second' });
    expect(second.tools.map(({ name: tool, description }) => [tool, description])).toEqual([
      ['delete', 'Deletes it'],
      ['change', 'What change does'],
    ]);
    expect(await client.callTool({ name: 'look', arguments: { name: 'look', n: 1 } })).toMatchObject({
      content: [{ text: '{"name":"read","given":{"name":"look","n":1}}' }],
    });
    const listed = await user.skep(['mcp', 'list', 'tools', name, '--format', 'json']);
    expect(JSON.parse(listed.stdout)).toEqual([...first.tools, ...second.tools]);
    const said = await user.skep(['mcp', 'call', name, 'look', 'n=1']);
    expect(said, said.stderr).toMatchObject({ code: 0, stdout: '{"name":"read","given":{"n":1}}\n' });
    const refused = await user.skep(['mcp', 'call', name, 'read']);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('has no tool "read"') });
    for (const hidden of ['write', 'read', 'nothing'])
      await expect(client.callTool({ name: hidden })).rejects.toMatchObject({
        code: -32_602,
        message: expect.stringContaining('tool not found'),
      });
    const changed = new Promise<void>((resolve) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
    });
    await client.callTool({ name: 'change' });
    await changed;
    await client.close();

    written({ read: { name: 'see' }, delete: { name: 'look' } });
    expect(await user.skep(['stop', name])).toMatchObject({ code: 0 });
    expect(await user.skep(['start', name])).toMatchObject({ code: 0 });
    const again = await connected(ran.stdout.trim(), older);
    expect((await again.listTools()).tools).toEqual([]);
    expect(await again.callTool({ name: 'look' })).toMatchObject({
      content: [{ text: '{"name":"delete"}' }],
    });
    await again.close();
    expect(await user.skep(['rm', name])).toMatchObject({ code: 0 });
  });
});
