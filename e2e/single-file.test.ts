import { execFileSync, spawn } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { component, repoRoot, title } from './require.ts';
import { ask, ended, NOBODY, openUser, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-single-file';

let folder: string;
let file: string;
let user: TestUser;

const unpacked = (): string => path.join(user.env['XDG_DATA_HOME'] ?? '', 'skep/single');

/** Runs the file as it is, not with the Node of these tests. */
function single(args: readonly string[], more: Readonly<Record<string, string>> = {}, what = file) {
  return ended(spawn(what, args, { cwd: user.dir, env: { ...user.env, ...more } }));
}

describe.skipIf(process.platform !== 'linux')('the single file', () => {
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'skep-single-test-'));
    const bundle = process.env['SKEP_TEST_BUNDLE'] ?? path.join(repoRoot, 'dist');
    const args = ['--program', path.join(bundle, 'skep'), '--out', folder, '--fast'];
    execFileSync(process.execPath, [path.join(repoRoot, 'scripts/single-file.ts'), ...args], {
      stdio: 'pipe',
    });
    file = path.join(folder, `skep-linux-${process.arch}`);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(() => {
    user = openUser({ SKEP_RUNTIME: 'sandbox' });
  });
  afterEach(() => user.end());

  test('comes with a checksum that holds', () => {
    const checked = execFileSync('sha256sum', ['-c', `${path.basename(file)}.sha256`], { cwd: folder });
    expect(String(checked)).toContain('OK');
  });

  test('needs no Node, and brings the licences of all that is in it', async () => {
    const bare = { PATH: '/usr/bin:/bin' };
    expect(await single(['version'], bare)).toEqual({ code: 0, stdout: 'skep 0.1.0\n', stderr: '' });
    expect(await single(['list'], bare)).toMatchObject({ code: 0, stderr: '' });
    const [digest = '', ...others] = readdirSync(unpacked());
    expect(others).toEqual([]);
    for (const licence of ['NODE-LICENSE.txt', 'skep/LICENSE', 'skep/THIRD-PARTY-LICENSES.txt']) {
      expect(existsSync(path.join(unpacked(), digest, licence))).toBe(true);
    }
  });

  test.skipIf(!sandbox.available)(
    title('runs an npm package in the sandbox, and its supervisor and server are what it unpacked', sandbox),
    async () => {
      await using registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
      const ran = await single(['run', `npx://${PACKAGE}`], { npm_config_registry: registry.url });
      expect(ran.code, ran.stderr).toBe(0);
      const url = /http:\/\/\S+/.exec(ran.stdout)?.[0] ?? '';
      expect(await ask(url, 'tools/list')).toMatchObject({ result: { tools: [{ name: 'smile' }] } });
      const [supervisor = 0] = user.supervisors();
      expect(readlinkSync(`/proc/${supervisor}/exe`)).toMatch(`${unpacked()}/`);
      const { stdout } = await single(['list', '--format', 'json']);
      expect(JSON.parse(stdout)).toEqual([
        expect.objectContaining({ name: PACKAGE, status: 'running', url }),
      ]);
      expect(await single(['rm', PACKAGE])).toMatchObject({ code: 0 });
    },
  );

  test('two that unpack at the same time leave one', async () => {
    const both = await Promise.all([single(['version']), single(['version'])]);
    expect(both).toEqual([
      { code: 0, stdout: 'skep 0.1.0\n', stderr: '' },
      { code: 0, stdout: 'skep 0.1.0\n', stderr: '' },
    ]);
    expect(readdirSync(unpacked())).toHaveLength(1);
  });

  test('a file that is not whole says so, and leaves nothing', async () => {
    const damaged = path.join(user.dir, 'damaged');
    writeFileSync(damaged, readFileSync(file).subarray(0, 5_000_000), { mode: 0o700 });
    const { code, stdout, stderr } = await single(['version'], {}, damaged);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`skep: "${damaged}" cannot be unpacked: it is damaged`);
    expect(readdirSync(unpacked())).toEqual([]);
  });

  test.skipIf(process.getuid?.() !== 0)('runs nothing from a folder that somebody else owns', async () => {
    await single(['version']);
    const refusedFor = (one: string) => ({
      code: 1,
      stdout: '',
      stderr: `skep: "${one}" belongs to somebody else; set XDG_DATA_HOME to a directory of yours\n`,
    });
    // Its owner could put another folder there at any time.
    const above = path.dirname(unpacked());
    chownSync(above, NOBODY, NOBODY);
    expect(await single(['version'])).toEqual(refusedFor(above));
    chownSync(above, 0, 0);
    chownSync(unpacked(), NOBODY, NOBODY);
    const refused = refusedFor(unpacked());
    expect(await single(['version'])).toEqual(refused);
    rmSync(unpacked(), { recursive: true });
    mkdirSync(unpacked());
    chownSync(unpacked(), NOBODY, NOBODY);
    expect(await single(['version'])).toEqual(refused);
  });
});
