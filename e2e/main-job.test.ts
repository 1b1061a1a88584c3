import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { freePort } from './fixtures/free-port.ts';
import { builtBy } from './fixtures/built-by.ts';
import { engine as askEngine, ensureNodeBase } from './images.ts';
import { component, repoRoot, title, type Component } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// The job of the product from end to end: a catalogue is served, a server from it is run by name, real clients use it.

const npm = await component('npm');
const engine = await component('engine');
const sandbox = await component('sandbox');
/** A name of its own, so that no other file builds the same image at the same time. */
const BASE = 'skep-test/node:main-job';
const INSPECTOR = 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js';

const RUNTIMES: readonly [string, Component, readonly string[]][] = [
  ['docker', engine, ['--runtime-image', BASE]],
  ['sandbox', sandbox, []],
];

let folder: string;
let registry: ChildProcess;
let base: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skep-main-job-'));
  const [port, internal] = [await freePort(), await freePort()];
  const starter = path.resolve(import.meta.dirname, '../packages/core/src/catalog/starter.json');
  cpSync(starter, path.join(folder, 'catalogue.json'));
  writeFileSync(
    path.join(folder, 'registry.yaml'),
    'sources: [{ name: starter, file: { path: ./catalogue.json }, syncPolicy: { interval: 5m } }]\n' +
      'registries: [{ name: all, sources: [starter] }]\nauth: { mode: anonymous }\n',
  );
  const bundle = process.env['SKEP_TEST_BUNDLE'];
  const program =
    bundle === undefined
      ? path.join(repoRoot, 'packages/registry/src/main.ts')
      : path.join(bundle, 'skep-registry/skep-registry.js');
  const listen = ['--address', `127.0.0.1:${port}`, '--internal-address', `127.0.0.1:${internal}`];
  registry = spawn(process.execPath, [program, 'serve', '--config', 'registry.yaml', ...listen], {
    cwd: folder,
    env: { ...process.env, XDG_DATA_HOME: path.join(folder, 'data') },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await ready(registry, `http://127.0.0.1:${internal}/readiness`);
  base = `http://127.0.0.1:${port}/registry/all`;
});

afterAll(async () => {
  registry.kill('SIGTERM');
  const [code] = (await once(registry, 'exit')) as [number];
  rmSync(folder, { recursive: true });
  expect(code).toBe(0);
});

describe.each(RUNTIMES)('on the %s runtime', (runtime, wanted, flags) => {
  describe.skipIf(!wanted.available || !npm.available)(
    title('a server is run by name from a served catalogue', wanted, npm),
    () => {
      const name = `everything-${randomBytes(3).toString('hex')}`;
      let user: TestUser;
      let url: string;

      beforeAll(async () => {
        if (runtime === 'docker') await ensureNodeBase(BASE);
        user = openUser({ SKEP_RUNTIME: runtime });
        const set = await user.skep(['config', 'set-registry', base, '--allow-private-ip']);
        expect(set.code, set.stderr).toBe(0);
        const { code, stdout, stderr } = await user.skep(['run', ...flags, '--name', name, 'everything']);
        expect(code, stderr).toBe(0);
        url = stdout.trim();
      });

      afterAll(async () => {
        expect(await user.skep(['rm', '--all', '--data'])).toMatchObject({ code: 0 });
        expect(user.supervisors()).toEqual([]);
        expect(user.leftFiles()).toEqual([]);
        if (runtime === 'docker') {
          expect(await containersNamed(name)).toEqual([]);
          expect(await builtBy(user)).toEqual([]);
        }
        await user.end();
      });

      test('the official client lists its tools and calls one', async () => {
        const client = new Client({ name: 'main-job', version: '1' });
        await client.connect(new StreamableHTTPClientTransport(new URL(url)));
        try {
          const { tools } = await client.listTools();
          expect(tools.map((tool) => tool.name)).toContain('get-sum');
          const { content } = await client.callTool({ name: 'get-sum', arguments: { a: 19, b: 23 } });
          expect(content).toEqual([{ type: 'text', text: 'The sum of 19 and 23 is 42.' }]);
        } finally {
          await client.close();
        }
      });

      test('the inspector calls the same tool', async () => {
        const call = ['--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=hello'];
        const args = [path.join(repoRoot, INSPECTOR), '--cli', url, '--transport', 'http', ...call];
        const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder });
        expect(JSON.parse(stdout)).toMatchObject({ content: [{ type: 'text', text: 'Echo: hello' }] });
      });

      test('list names the catalogue entry it runs', async () => {
        const { stdout } = await user.skep(['list', '--format', 'json']);
        expect(JSON.parse(stdout)).toEqual([expect.objectContaining({ name, status: 'running', url })]);
      });
    },
  );
});

async function ready(server: ChildProcess, url: string): Promise<void> {
  let said = '';
  server.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await vi.waitFor(
    async () => {
      if (server.exitCode !== null) throw new Error(`skep-registry ended: ${said}`);
      expect((await fetch(url)).status).toBe(200);
    },
    { timeout: 20_000, interval: 100 },
  );
}

/** Containers on the engine of whatever state that carry the name. */
async function containersNamed(name: string): Promise<readonly string[]> {
  const filters = encodeURIComponent(JSON.stringify({ name: [name] }));
  const { text } = await askEngine('GET', `/containers/json?all=1&filters=${filters}`);
  return (JSON.parse(text) as readonly { readonly Id: string }[]).map(({ Id }) => Id);
}
