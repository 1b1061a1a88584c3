import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { SETTINGS } from '@skep/proxy/doubles/running-proxy.ts';
import { startProxy, type Proxy } from '@skep/proxy/start.ts';
import { conformanceCommand, spawnedBackend } from './fixtures/spawned-server.ts';
import { repoRoot } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

const INSPECTOR = realpathSync(path.join(repoRoot, 'node_modules/.bin/mcp-inspector'));
const run = promisify(execFile);

let proxy: Proxy;
let piped: ReturnType<typeof spawnedBackend>;

beforeAll(async () => {
  piped = spawnedBackend(conformanceCommand('stdio'));
  proxy = await startProxy({ ...SETTINGS, backend: piped.backend });
});

afterAll(async () => {
  await proxy.close();
  piped[Symbol.dispose]();
});

const inspect = async (...args: readonly string[]): Promise<unknown> => {
  const { stdout } = await run(process.execPath, [
    INSPECTOR,
    '--cli',
    proxy.url,
    '--transport',
    'http',
    ...args,
  ]);
  return JSON.parse(stdout);
};

test('the official inspector lists the tools of a stdio server through the proxy', async () => {
  expect(await inspect('--method', 'tools/list')).toMatchObject({
    tools: expect.arrayContaining([expect.objectContaining({ name: 'test_simple_text' })]),
  });
});

test('the official inspector calls a tool through the proxy', async () => {
  expect(await inspect('--method', 'tools/call', '--tool-name', 'test_simple_text')).toMatchObject({
    content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
  });
});

describe('skep inspector', () => {
  /** Where npm looks for what its user has installed for good: the inspector is there, at the version that Skep runs. */
  function withInspector(user: TestUser): Record<string, string> {
    const prefix = path.join(user.dir, 'npm-prefix');
    const scope = path.join(prefix, 'lib/node_modules/@modelcontextprotocol');
    mkdirSync(scope, { recursive: true });
    mkdirSync(path.join(prefix, 'bin'));
    symlinkSync(
      path.join(repoRoot, 'node_modules/@modelcontextprotocol/inspector'),
      path.join(scope, 'inspector'),
    );
    symlinkSync(INSPECTOR, path.join(prefix, 'bin/inspector'));
    return { npm_config_prefix: prefix };
  }

  test('runs it on a server with a token that no process shows, and ends it with Ctrl-C', async () => {
    const user = openUser();
    try {
      const token = `t${randomUUID()}`;
      writeFileSync(path.join(user.dir, 'token'), token, { mode: 0o600 });
      const running = user.start(
        ['inspector', proxy.url, '--no-open', '--token-file', path.join(user.dir, 'token')],
        { env: withInspector(user) },
      );
      let said = '';
      running.stdout?.setEncoding('utf8').on('data', (text: string) => (said += text));
      running.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text));
      const address = await vi.waitFor(() => addressIn(said), { timeout: 30_000, interval: 100 });
      const listed = await fetch(new URL('/api/servers', address), {
        headers: { 'x-mcp-remote-auth': `Bearer ${address.searchParams.get('MCP_INSPECTOR_API_TOKEN')}` },
      });
      expect(JSON.stringify(await listed.json())).toContain(JSON.stringify(proxy.url));
      expect(commandLines()).not.toContain(token);
      expect(said).not.toContain(token);
      running.kill('SIGINT');
      await once(running, 'close');
      await expect(fetch(address)).rejects.toThrow();
      expect(commandLines()).not.toContain(user.dir);
      const left = user.leftFiles().filter((file) => file.includes('inspector'));
      // What is compiled of the command has its name.
      expect(left.filter((file) => !file.startsWith('cache/skep/compiled/'))).toEqual([]);
    } finally {
      await user.end();
    }
  });
});

/** Where it says that it is. */
function addressIn(said: string): URL {
  const url = URL.parse(/http:\/\/127\.0\.0\.1:\S+/u.exec(said)?.[0] ?? '');
  if (url === null) throw new Error(`it has not said where it is: ${said}`);
  return url;
}

/** Of every process of this machine, as anybody can read them. */
function commandLines(): string {
  const all = readdirSync('/proc').filter((name) => /^\d+$/u.test(name));
  return all.map((pid) => readIfThere(`/proc/${pid}/cmdline`)).join('\n');
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
