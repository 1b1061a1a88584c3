import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blocksOf } from './page-blocks.ts';
import { repoRoot } from './require.ts';

// What the README says of installing, done in a folder of a newcomer's, without a package registry at hand.

const bundle = process.env['SKEP_TEST_BUNDLE'] ?? path.join(repoRoot, 'dist');
const PROGRAMS = ['skep', 'skep-registry'] as const;
const readme = await blocksOf('README.md');

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

/** Where npm installs to, and where the newcomer works. */
let prefix: string;
let work: string;

const modules = (): string => path.join(prefix, 'lib/node_modules');

const ownNode = path.dirname(process.execPath);

function installed(program: string, args: readonly string[], node = ownNode, home = work) {
  const env = { HOME: home, PATH: `${node}:/usr/bin:/bin` };
  return spawnSync(path.join(prefix, 'bin', program), args, { cwd: work, env, encoding: 'utf8' });
}

/** What a shell in the newcomer's folder prints. Fails when the command does. */
function shell(command: string): string {
  const search = [path.join(prefix, 'bin'), path.dirname(process.execPath), process.env['PATH']].join(':');
  return execFileSync('sh', ['-c', command], {
    cwd: work,
    encoding: 'utf8',
    env: {
      HOME: work,
      SKEP_FRONT_PORT: '0',
      PATH: search,
      npm_config_prefix: prefix,
      npm_config_offline: 'true',
      npm_config_registry: 'http://127.0.0.1:9/',
    },
  });
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

beforeAll(() => {
  prefix = mkdtempSync(path.join(tmpdir(), 'skep-installed-'));
  work = mkdtempSync(path.join(tmpdir(), 'skep-newcomer-'));
  // Stands for the checkout, in which the line before has built these.
  symlinkSync(bundle, path.join(work, 'dist'));
  const [install = ''] = /^npm install --global .*$/m.exec(readme('sh', 'npm install --global')) ?? [];
  shell(install);
});
afterAll(() => {
  for (const folder of [prefix, work]) rmSync(folder, { recursive: true, force: true });
});

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
    '%s is whole in an empty prefix: a folder of its own with all that it needs',
    (program) => {
      const names = readdirSync(modules()).filter((name) => !name.startsWith('.'));
      expect(names.toSorted()).toEqual([...PROGRAMS]);
      const folder = path.join(modules(), program);
      expect(lstatSync(folder).isSymbolicLink()).toBe(false);
      expect(readdirSync(folder).toSorted()).toEqual([
        'LICENSE',
        'README.md',
        'THIRD-PARTY-LICENSES.txt',
        // Policies are read by Cedar itself.
        ...(program === 'skep' ? ['cedar.wasm'] : []),
        'chunks',
        // What stands between isolated servers and the network is a program of its own.
        ...(program === 'skep' ? ['gateway.mjs'] : []),
        'package.json',
        `${program}.js`,
      ]);
    },
  );

  test('skep keeps what it has compiled for a command, in three runs and not in each', () => {
    const home = path.join(work, 'home');
    const kept = (): string[] =>
      filesOf(path.join(home, '.cache/skep/compiled')).map((file) => `${file} ${statSync(file).mtimeMs}`);
    const runs = [1, 2, 3, 4, 5].map(() => {
      expect(installed('skep', ['search', 'weather'], ownNode, home)).toMatchObject({ status: 0 });
      return kept();
    });
    expect(runs[0]?.[0]).toMatch(/\/search \d/);
    expect(new Set(runs.slice(0, 3).map(String)).size).toBe(3);
    expect([runs[3], runs[4]]).toEqual([runs[2], runs[2]]);
    expect(installed('skep', ['search', '--nothing'], ownNode, home)).toMatchObject({ status: 1 });
    expect(kept()).toEqual(runs[2]);
  });

  test.each(PROGRAMS)(
    '%s says what it is, needs no other package and runs nothing at its installation',
    (program) => {
      const manifest = JSON.parse(
        readFileSync(path.join(modules(), program, 'package.json'), 'utf8'),
      ) as object;
      expect(manifest).toMatchObject({
        name: program,
        license: 'Apache-2.0',
        description: expect.stringContaining('MCP servers'),
        keywords: expect.arrayContaining(['mcp']),
        engines: { node: '>=24' },
        os: ['linux', 'darwin'],
      });
      const others = ['dependencies', 'optionalDependencies', 'peerDependencies', 'scripts', 'private'];
      expect(others.filter((key) => key in manifest)).toEqual([]);
    },
  );

  test.each(PROGRAMS)('the page of %s is its own, and its links lead to what lies beside it', (program) => {
    const folder = path.join(modules(), program);
    const page = readFileSync(path.join(folder, 'README.md'), 'utf8');
    expect(page).toMatch(new RegExp(`^# ${program}\n`));
    const links = [...page.matchAll(/\]\(([^)\s]+)\)/g)].map(([, to = '']) => to);
    expect(links).toContain('LICENSE');
    expect(links.filter((to) => !to.startsWith('https://') && !existsSync(path.join(folder, to)))).toEqual(
      [],
    );
  });

  test('nothing that is installed or printed names the checkout', () => {
    const naming = filesOf(modules()).filter((file) => readFileSync(file, 'utf8').includes(repoRoot));
    expect(naming).toEqual([]);
    for (const args of [
      ['version', '--format', 'json'],
      ['help'],
      ['list'],
      ['search', 'files'],
      ['run', '--help'],
    ]) {
      const { status, stdout, stderr } = installed('skep', args);
      expect({ args, status }).toEqual({ args, status: 0 });
      expect(stdout + stderr).not.toContain(repoRoot);
    }
  });

  test('what the README shows first works from here', () => {
    expect(shell('skep search filesystem')).toContain('filesystem');
    writeFileSync(path.join(work, 'registry.yaml'), readme('yaml'));
    writeFileSync(path.join(work, 'catalogue.json'), readme('json'));
    const [validate = ''] = /^skep-registry validate .*$/m.exec(readme('sh', 'skep-registry validate')) ?? [];
    expect(shell(validate)).toContain('is valid');
  });

  test('Node takes nothing from a file that is given with --env-file', () => {
    const loaded = path.join(work, 'loaded');
    writeFileSync(
      path.join(work, 'evil.cjs'),
      `require('node:fs').writeFileSync(${JSON.stringify(loaded)}, '')`,
    );
    const options = `NODE_OPTIONS=--require ${path.join(work, 'evil.cjs')}\n`;
    writeFileSync(path.join(work, 'server.env'), options);
    const args = ['run', 'no-such-server', '--env-file', path.join(work, 'server.env')];
    expect(installed('skep', args)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no-such-server'),
    });
    expect(spawnSync('ls', [loaded]).status).not.toBe(0);
  });

  test.each(PROGRAMS)('%s says in one line that a Node is too old', (program) => {
    const pretend = path.join(work, 'pretend.cjs');
    writeFileSync(pretend, `Object.defineProperty(process, 'version', { value: 'v20.20.2' });`);
    const entry = path.join(modules(), program, `${program}.js`);
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

  test('what was installed can be removed, and leaves nothing', () => {
    shell('npm uninstall --global skep skep-registry');
    expect(filesOf(prefix)).toEqual([]);
  });
});
