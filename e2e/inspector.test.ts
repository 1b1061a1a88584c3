import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SETTINGS } from '@skep/proxy/doubles/running-proxy.ts';
import { startProxy, type Proxy } from '@skep/proxy/start.ts';
import { conformanceCommand, spawnedBackend } from './fixtures/spawned-server.ts';
import { repoRoot } from './require.ts';

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
