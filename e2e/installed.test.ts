import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const bundle = process.env['SKEP_TEST_BUNDLE'];
const PROGRAMS = ['skep', 'skep-registry'] as const;

/** The Node of the machine, when it is older than what the programs need. */
function oldNode(): string | undefined {
  const plain = '/usr/local/bin:/usr/bin:/bin';
  const { stdout } = spawnSync('sh', ['-c', 'command -v node && node -p process.versions.node'], {
    env: { PATH: plain },
    encoding: 'utf8',
  });
  const [file, version = ''] = stdout.trim().split('\n');
  return Number(version.split('.')[0]) < 24 ? file : undefined;
}

let prefix: string;

function installed(program: string, args: readonly string[], node = path.dirname(process.execPath)) {
  const env = { HOME: prefix, PATH: `${node}:/usr/bin:/bin` };
  return spawnSync(path.join(prefix, 'bin', program), args, { cwd: prefix, env, encoding: 'utf8' });
}

beforeAll(() => {
  prefix = mkdtempSync(path.join(tmpdir(), 'skep-installed-'));
  const folders = PROGRAMS.map((name) => path.join(bundle ?? 'dist', name));
  // As the README says: a folder that is installed would be a link into the checkout.
  const pack = ['pack', '--silent', '--pack-destination', prefix, ...folders];
  const files = execFileSync('npm', pack, { encoding: 'utf8' }).trim().split('\n');
  const packed = files.map((file) => path.join(prefix, file));
  execFileSync('npm', ['install', '--global', '--offline', '--prefix', prefix, ...packed], {
    stdio: 'ignore',
  });
});
afterAll(() => rmSync(prefix, { recursive: true, force: true }));

describe('the installed programs', () => {
  test.each(PROGRAMS)('%s runs by its name, and its arguments are its own', (program) => {
    expect(installed(program, ['version'])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^skep/),
    });
    expect(installed(program, ['help', 'a b'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('a b"'),
    });
  });

  test.each(PROGRAMS)(
    '%s is whole in an empty prefix: no link, no dependency, no script of its own',
    (program) => {
      const modules = path.join(prefix, 'lib/node_modules');
      expect(
        readdirSync(modules)
          .filter((name) => !name.startsWith('.'))
          .toSorted(),
      ).toEqual([...PROGRAMS]);
      expect(lstatSync(path.join(modules, program)).isSymbolicLink()).toBe(false);
      const manifest = JSON.parse(
        readFileSync(path.join(modules, program, 'package.json'), 'utf8'),
      ) as object;
      expect(Object.keys(manifest)).not.toContain('dependencies');
      expect(Object.keys(manifest)).not.toContain('scripts');
      expect(existsSync(path.join(modules, program, 'THIRD-PARTY-LICENSES.txt'))).toBe(true);
    },
  );

  test('Node takes nothing from a file that is given with --env-file', () => {
    const loaded = path.join(prefix, 'loaded');
    writeFileSync(
      path.join(prefix, 'evil.cjs'),
      `require('node:fs').writeFileSync(${JSON.stringify(loaded)}, '')`,
    );
    const options = `NODE_OPTIONS=--require ${path.join(prefix, 'evil.cjs')}\n`;
    writeFileSync(path.join(prefix, 'server.env'), options);
    const args = ['run', 'no-such-server', '--env-file', path.join(prefix, 'server.env')];
    expect(installed('skep', args)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no-such-server'),
    });
    expect(spawnSync('ls', [loaded]).status).not.toBe(0);
  });

  test.each(PROGRAMS)('%s says in one line that a Node is too old', (program) => {
    const pretend = path.join(prefix, 'pretend.cjs');
    writeFileSync(pretend, `Object.defineProperty(process, 'version', { value: 'v20.20.2' });`);
    const entry = path.join(prefix, 'lib/node_modules', program, `${program}.js`);
    const args = ['--require', pretend, '--', entry, 'list'];
    expect(spawnSync(process.execPath, args, { encoding: 'utf8' })).toMatchObject({
      status: 1,
      stdout: '',
      stderr: `${program} needs Node 24 or newer, and this is v20.20.2\n`,
    });
  });

  const old = oldNode();
  test.skipIf(old === undefined).each(PROGRAMS)(
    '%s says so under the old Node of this machine',
    (program) => {
      const { status, stdout, stderr } = installed(program, ['list'], path.dirname(old ?? ''));
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toMatch(/^skep(-registry)? needs Node 24 or newer, and this is v\d+\.\d+\.\d+\n$/);
    },
  );
});
