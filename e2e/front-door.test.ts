import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from './fixtures/free-port.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { openUser, skepEntry, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-front';
const INFO = { name: 'test', version: '1' };

/** A port that nobody listens on now. */
describe.skipIf(!sandbox.available)(title('the front door', sandbox), () => {
  let registry: NpmRegistry;
  let user: TestUser;
  let port: string;

  beforeAll(async () => {
    registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
    port = String(await freePort());
    user = openUser(settings());
    for (const name of ['front-a', 'front-b']) expect(await run(user, name)).toBe(frontUrl(name));
  });
  afterAll(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
  });

  const settings = (): Record<string, string> => ({
    SKEP_RUNTIME: 'sandbox',
    npm_config_registry: registry.url,
    SKEP_FRONT_PORT: port,
  });
  const frontUrl = (name: string): string => `http://127.0.0.1:${port}/${name}/mcp`;

  async function run(who: TestUser, name: string): Promise<string> {
    const { code, stdout, stderr } = await who.skep(['run', `npx://${PACKAGE}`, '--name', name]);
    expect(code, stderr).toBe(0);
    return stdout.trim();
  }

  async function toolsAt(url: string): Promise<readonly string[]> {
    const client = new Client(INFO);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    try {
      return (await client.listTools()).tools.map(({ name }) => name);
    } finally {
      await client.close();
    }
  }

  test('the official client calls a tool through it, also after rm and a run of the same name', async () => {
    expect(await toolsAt(frontUrl('front-a'))).toEqual(['smile']);
    const before: unknown = JSON.parse((await user.skep(['status', 'front-a', '--format', 'json'])).stdout);
    expect(before).toMatchObject({ front_url: frontUrl('front-a') });
    await user.skep(['rm', 'front-a']);
    expect(await run(user, 'front-a')).toBe(frontUrl('front-a'));
    const after = JSON.parse((await user.skep(['status', 'front-a', '--format', 'json'])).stdout) as object;
    const { url, port: own } = before as { url: string; port: number };
    expect(after).toMatchObject({ url, port: own, front_url: frontUrl('front-a') });
    expect(await toolsAt(frontUrl('front-a'))).toEqual(['smile']);
  });

  test('one that is stopped says how to start it, and the others answer', async () => {
    await user.skep(['stop', 'front-b']);
    const answer = await fetch(frontUrl('front-b'), { method: 'POST', body: '{}' });
    expect([answer.status, await answer.text()]).toEqual([
      503,
      expect.stringContaining('skep start front-b'),
    ]);
    expect(await toolsAt(frontUrl('front-a'))).toEqual(['smile']);
    await user.skep(['start', 'front-b']);
    expect(await toolsAt(frontUrl('front-b'))).toEqual(['smile']);
  });

  test('a supervisor that was killed opens it again', async () => {
    await user.killSupervisor();
    await user.skep(['list']);
    await expect
      .poll(() => toolsAt(frontUrl('front-a')).catch(() => []), { timeout: 20_000 })
      .toEqual(['smile']);
  });

  test('a second home runs without it, and is told who has the port', async () => {
    const other = openUser(settings());
    try {
      const { code, stdout, stderr } = await other.skep(['run', `npx://${PACKAGE}`, '--name', 'front-a']);
      expect(code, stderr).toBe(0);
      expect(stderr).toMatch(
        new RegExp(
          `^Warning: port ${port} .*Skep supervisor of another home \\(process \\d+\\).*front-port N`,
          'm',
        ),
      );
      expect(stdout.trim()).not.toBe(frontUrl('front-a'));
      expect(await toolsAt(stdout.trim())).toEqual(['smile']);
    } finally {
      await other.end();
    }
  });

  test('the official client speaks over standard input and output, and a supervisor is killed under it', async () => {
    await user.skep(['stop', 'front-b']);
    const client = new Client(INFO);
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: ['--', skepEntry(), 'proxy', 'stdio', 'front-b'],
      env: { ...user.env },
      cwd: path.parse(user.dir).root,
      stderr: 'ignore',
    });
    await client.connect(transport);
    try {
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['smile']);
      await user.killSupervisor();
      const again = async (): Promise<readonly string[]> =>
        (await client.listTools()).tools.map(({ name }) => name);
      await expect.poll(() => again().catch(() => []), { timeout: 30_000 }).toEqual(['smile']);
    } finally {
      await client.close();
    }
  });
});
