import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { builtBy } from './fixtures/built-by.ts';
import { ensurePythonBase } from './images.ts';
import { component, title } from './require.ts';
import { ask, openUser, type TestUser } from './skep.ts';

const engine = await component('engine');
const pypi = await component('pypi');
const there = engine.available && pypi.available;
const sandbox = await component('sandbox');
const python = await component('python');
const sandboxed = sandbox.available && python.available && pypi.available;

// Downloads uv and builds for up to a minute.
describe.skipIf(!there)(title('a package of the Python index', engine, pypi), { timeout: 300_000 }, () => {
  let user: TestUser;
  let flags: readonly string[];
  beforeEach(async () => {
    user = openUser({ SKEP_RUNTIME: 'docker' });
    const ca = process.env['SSL_CERT_FILE'] ?? process.env['NODE_EXTRA_CA_CERTS'];
    const name = `uvx-${randomBytes(3).toString('hex')}`;
    flags = [
      '--name',
      name,
      '--runtime-image',
      await ensurePythonBase(),
      ...(ca === undefined ? [] : ['--ca-cert', ca]),
    ];
  });
  afterEach(async () => {
    await user.end();
    expect(await builtBy(user)).toEqual([]);
  });

  test('is built, runs and answers', async () => {
    const beside = ['--build-with', 'iniconfig==2.0.0'];
    const { code, stdout, stderr } = await user.skep(['run', 'uvx://mcp-server-time', ...beside, ...flags]);
    expect(code, stderr).toBe(0);
    const { result } = await ask(stdout.trim(), 'tools/list');
    expect(result?.['tools']).toContainEqual(expect.objectContaining({ name: 'get_current_time' }));
    const saved = path.join(user.dir, 'state/skep/runconfigs', `${flags[1] ?? ''}.json`);
    const { image } = JSON.parse(readFileSync(saved, 'utf8')) as { image: string };
    const look = "import glob; print(len(glob.glob('/opt/uv-tools/*/lib/*/*/iniconfig-2.0.0.dist-info')))";
    const inside = ['run', '--rm', '--network', 'none', '--entrypoint', 'python3', image, '-c', look];
    expect(execFileSync('docker', inside, { encoding: 'utf8' }).trim()).toBe('1');
  });

  test('that does not exist is refused with one line, and nothing is left', async () => {
    const { code, stdout, stderr } = await user.skep([
      'run',
      'uvx://skep-test-no-such-package-of-anyone',
      ...flags,
    ]);
    expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' });
    expect(stderr.split('\n').filter((line) => line.startsWith('Error: '))).toEqual([
      expect.stringContaining('package "skep-test-no-such-package-of-anyone" was not found'),
    ]);
  });
});

describe.skipIf(!sandboxed)(
  title('the same without an engine', sandbox, python, pypi),
  { timeout: 180_000 },
  () => {
    test('is fetched, runs in the sandbox and answers', async () => {
      const user = openUser({ SKEP_RUNTIME: 'sandbox' });
      try {
        const { code, stdout, stderr } = await user.skep(['run', 'uvx://mcp-server-time']);
        expect(code, stderr).toBe(0);
        const { result } = await ask(stdout.trim(), 'tools/list');
        expect(result?.['tools']).toContainEqual(expect.objectContaining({ name: 'get_current_time' }));
      } finally {
        await user.end();
      }
    });
  },
);
