import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundled } from './fixtures/bundled.ts';
import { freePort } from './fixtures/free-port.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-older';
const OVER_SSE = ['--transport', 'sse', '--target-port', '3000'];

async function connected(url: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new SSEClientTransport(new URL(url)));
  return client;
}

describe.skipIf(!sandbox.available)(title('HTTP with SSE', sandbox), () => {
  let registry: NpmRegistry;
  let user: TestUser;
  let front: number;

  beforeAll(async () => {
    registry = await npmRegistryWith(PACKAGE, await bundled('sse-server.ts'));
    front = await freePort();
    user = openUser({
      SKEP_RUNTIME: 'sandbox',
      npm_config_registry: registry.url,
      SKEP_FRONT_PORT: String(front),
    });
  });
  afterAll(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
  });

  test.each([
    ['in front of a stdio server', 'old-a', ['--proxy-mode', 'sse'], ['1', '2']],
    ['of a server that speaks it, to each client in a session of its own', 'old-b', OVER_SSE, ['1', '1']],
  ])(
    '%s: official clients call it through the front door and on its own port',
    async (_, name, flags, counts) => {
      const started = await user.skep(['run', `npx://${PACKAGE}`, '--name', name, ...flags]);
      expect(started.code, started.stderr).toBe(0);
      expect(started.stdout.trim()).toBe(`http://127.0.0.1:${front}/${name}/sse#${name}`);
      const status = JSON.parse((await user.skep(['status', name, '--format', 'json'])).stdout) as {
        url: string;
      };
      expect(status).toMatchObject({ status: 'running', proxy_mode: 'sse' });
      expect(status.url).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+/sse#${name}$`));
      expect(started.stderr.includes('--proxy-mode sse is deprecated')).toBe(flags.includes('--proxy-mode'));
      const clients = [await connected(started.stdout.trim()), await connected(status.url)];
      for (const [at, client] of clients.entries()) {
        expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(['count']);
        expect(await client.callTool({ name: 'count' })).toMatchObject({ content: [{ text: counts[at] }] });
        await client.close();
      }
      expect(await user.skep(['stop', name])).toMatchObject({ code: 0 });
      expect(await user.skep(['start', name])).toMatchObject({ code: 0 });
      const again = await connected(status.url);
      expect(await again.callTool({ name: 'count' })).toMatchObject({ content: [{ text: '1' }] });
      await again.close();
      expect(await user.skep(['rm', name])).toMatchObject({ code: 0 });
    },
  );

  test('the address that clients post to stands below a prefix', async () => {
    const flags = [...OVER_SSE, '--endpoint-prefix', '/behind/', '--trust-proxy-headers'];
    const { code, stderr } = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'old-c', ...flags]);
    expect(code, stderr).toBe(0);
    const { url } = JSON.parse((await user.skep(['status', 'old-c', '--format', 'json'])).stdout) as {
      url: string;
    };
    const headers = {
      Accept: 'text/event-stream',
      'X-Forwarded-Host': 'mcp.example',
      'X-Forwarded-Proto': 'https',
    };
    const stop = new AbortController();
    const { body } = await fetch(url, { headers, signal: stop.signal });
    const first = await body?.getReader().read();
    stop.abort();
    expect(Buffer.from(first?.value ?? []).toString()).toMatch(
      /^event: endpoint\ndata: https:\/\/mcp\.example\/behind\/messages\?sessionId=[0-9a-f-]{36}\n\n$/,
    );
    expect(await user.skep(['rm', 'old-c'])).toMatchObject({ code: 0 });
  });
});
