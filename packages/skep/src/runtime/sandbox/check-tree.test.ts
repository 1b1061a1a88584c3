import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkFiles, checkTree } from './check-tree.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-tree-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const REGISTRY = 'http://127.0.0.1:4873/';
const good = { resolved: `${REGISTRY}-/a/1.0.0.tgz` };

async function tree(packages: Record<string, object>): Promise<string> {
  const root = await mkdtemp(path.join(directory, 'tree'));
  await mkdir(path.join(root, 'node_modules/a/deep'), { recursive: true });
  await mkdir(path.join(root, 'node_modules/.bin'));
  await writeFile(path.join(root, 'node_modules/a/cli.js'), '');
  await symlink('../a/cli.js', path.join(root, 'node_modules/.bin/a'));
  await writeFile(path.join(root, 'node_modules/.package-lock.json'), JSON.stringify({ packages }));
  return root;
}

const check = (root: string) => checkTree({ tree: root, specifier: 'a@1.0.0', registry: REGISTRY });

test('takes packages of the registry, what they bring themselves, and links within the tree', async () => {
  await check(await tree({ 'node_modules/a': good, 'node_modules/a/node_modules/b': { inBundle: true } }));
});

test.each([
  ['a git repository', { resolved: 'git+ssh://git@h.test/x.git#1' }, '"x" (git+ssh://git@h.test/x.git#1)'],
  ['a URL', { resolved: 'https://h.test/x.tgz' }, '"x" (https://h.test/x.tgz)'],
  ['a file', { resolved: 'file:../x.tgz' }, '"x" (file:../x.tgz)'],
  ['a linked directory', { resolved: '../project', link: true }, '"x" (../project)'],
  ['a link to itself', { ...good, link: true }, `"x" (${good.resolved})`],
  ['nowhere that is known', {}, '"x" (of unknown origin)'],
])('refuses a package from %s and names it', async (_what, entry, named) => {
  const root = await tree({ 'node_modules/a': good, 'node_modules/a/node_modules/x': entry });
  await expect(check(root)).rejects.toMatchObject({
    code: 'runtime/prefetch-failed',
    message: `package "a@1.0.0" depends on ${named}, which is not in a package registry`,
  });
});

test.each([
  ['an absolute place', '/etc/passwd'],
  ['a place above', '../../../secret'],
  ['a place behind another link', 'deep/../../../x'],
])('refuses a link to %s', async (_what, target) => {
  const root = await tree({ 'node_modules/a': good });
  await symlink(target, path.join(root, 'node_modules/a/link'));
  await expect(check(root)).rejects.toMatchObject({
    message: expect.stringContaining('is a link out of it'),
  });
});

test('refuses what is no file, so that nothing waits for it', async () => {
  const root = await tree({ 'node_modules/a': good });
  execFileSync('mkfifo', [path.join(root, 'node_modules/a/pipe')]);
  await expect(check(root)).rejects.toMatchObject({ message: expect.stringContaining('"pipe" is no file') });
});

test('leaves everything readable for everyone, writable for nobody else, and with nobody else’s rights', async () => {
  const root = await tree({ 'node_modules/a': good });
  const [open, closed] = ['node_modules/a/cli.js', 'node_modules/a/deep'].map((name) =>
    path.join(root, name),
  );
  await chmod(open ?? '', 0o4777);
  await chmod(closed ?? '', 0o700);
  await check(root);
  const modes = await Promise.all([open, closed].map(async (one) => (await stat(one ?? '')).mode & 0o7777));
  expect(modes).toEqual([0o755, 0o755]);
});

test('refuses more files than this process could look at, in one directory and in many', async () => {
  const root = await mkdtemp(path.join(directory, 'many'));
  for (const name of ['one', 'other']) {
    await mkdir(path.join(root, name));
    for (let at = 0; at < 150; at += 1) await writeFile(path.join(root, name, `${at}`), '');
  }
  const fetched = { tree: root, specifier: 'a@1.0.0' };
  await checkFiles(fetched, 302);
  await expect(checkFiles(fetched, 301)).rejects.toMatchObject({
    code: 'runtime/prefetch-failed',
    message: 'package "a@1.0.0" could not be fetched: it holds more than 301 files',
  });
});

test('refuses directories that are nested deeper than a path can be', async () => {
  const root = await mkdtemp(path.join(directory, 'deep'));
  const script =
    'name=$(printf %0200d 0); for one in $(seq 30); do mkdir $name && cd -P $name || exit 1; done';
  execFileSync('sh', ['-c', script], { cwd: root });
  try {
    await expect(checkFiles({ tree: root, specifier: 'a@1.0.0' })).rejects.toMatchObject({
      code: 'runtime/prefetch-failed',
      message: expect.stringContaining('cannot be looked at (ENAMETOOLONG)'),
    });
  } finally {
    execFileSync('rm', ['-rf', '--', root]);
  }
});
