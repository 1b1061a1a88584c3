import { execFileSync } from 'node:child_process';
import {
  chmod,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Mount } from '../../permissions/mounts.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { bootId } from './linux-process.ts';
import { treeManifest } from './package-trees.ts';
import { workloadPlaces, type WorkloadPlaces } from './places.ts';
import { removeFiles } from './own-directories.ts';
import { serverState } from './server-state.ts';

let directory: string;
let places: WorkloadPlaces;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-state-'));
  places = workloadPlaces(path.join(directory, 'workload'));
  await mkdir(places.directory);
});
afterEach(() => removeFiles(directory));

/** A tree whose package @s/p has these files; the content of each is the tree's name. */
async function tree(name: string, files: readonly string[]): Promise<string> {
  const root = path.join(directory, name);
  for (const file of files) {
    await mkdir(path.join(root, 'node_modules/@s/p', path.dirname(file)), { recursive: true });
    await writeFile(path.join(root, 'node_modules/@s/p', file), name);
  }
  await writeFile(path.join(root, 'package.json'), treeManifest('@s/p'));
  return root;
}

async function state(root: string, user?: ConfinedUser): Promise<readonly Mount[]> {
  const made = await serverState({ places, reference: path.basename(root), tree: root, user });
  await made.complete();
  return made.mounts;
}
/** The copy was last seen whole before the machine went down. */
async function bootAnew(): Promise<void> {
  const made = JSON.parse(await readFile(places.shipped, 'utf8')) as object;
  await writeFile(places.shipped, JSON.stringify({ ...made, boot: 'another boot' }));
}
const own = (file: string) => path.join(places.state, 'package', file);
const text = (file: string) => readFile(own(file), 'utf8');

describe('a server', () => {
  test('has its folder copied anew where a copy was cut short', async () => {
    const root = await tree('one', ['dist/index.js']);
    await serverState({ places, reference: path.basename(root), tree: root, user: undefined });
    await mkdir(own('dist'));
    await writeFile(own('dist/index.js'), 'half');
    await writeFile(own('left.js'), 'half');
    await state(root);
    expect(await text('dist/index.js')).toBe('one');
    await expect(text('left.js')).rejects.toThrow('ENOENT');
  });

  /** As package-copy.ts makes it. */
  async function copied(root: string): Promise<void> {
    await cp(path.join(root, 'node_modules/@s/p/dist'), own('dist'), { recursive: true });
    await writeFile(own('ahead.js'), 'ahead');
    const { ino, ctimeMs } = await lstat(root);
    await writeFile(places.copied, `${await bootId()} ${path.basename(root)} ${ino} ${ctimeMs}`);
  }

  test('begins with the copy that was made ahead, once', async () => {
    const root = await tree('one', ['dist/index.js', 'node_modules/dep/index.js']);
    await copied(root);
    // A start that is cut short leaves it as it is.
    await serverState({ places, reference: 'one', tree: root, user: undefined });
    await state(root);
    expect([await text('dist/index.js'), await text('ahead.js')]).toEqual(['one', 'ahead']);
    const { files } = JSON.parse(await readFile(places.shipped, 'utf8')) as { files: string[] };
    expect(files.toSorted()).toEqual(['ahead.js', 'dist/index.js']);
    await writeFile(places.shipped, 'damaged');
    await state(root);
    expect((await readdir(own('.'))).toSorted()).toEqual(['dist', 'node_modules']);
  });

  test('does not begin with a copy of another package', async () => {
    await copied(await tree('other', ['dist/index.js']));
    await state(await tree('one', ['dist/index.js']));
    expect(await text('dist/index.js')).toBe('one');
    await expect(text('ahead.js')).rejects.toThrow('ENOENT');
  });

  test.skipIf(process.getuid?.() !== 0)('has what was copied ahead given to its user', async () => {
    const root = await tree('one', ['dist/index.js']);
    await copied(root);
    await state(root, { uid: 60_710, gid: 60_710 });
    const owners = await Promise.all(['.', 'dist', 'dist/index.js'].map((one) => lstat(own(one))));
    expect(owners.map(({ uid }) => uid)).toEqual([60_710, 60_710, 60_710]);
  });

  test('does not start where its folder cannot be copied, and the reason is told', async () => {
    const root = await tree('one', ['dist/index.js']);
    const made = await serverState({ places, reference: 'one', tree: root, user: undefined });
    await rm(places.state, { recursive: true });
    await expect(made.complete()).rejects.toMatchObject({
      code: 'file/write-failed',
      message: expect.stringMatching(/^cannot copy the package into ".*\/package": cp: .*package/),
    });
  });

  test('may write its home and the folder of its package, and nothing that it depends on', async () => {
    const root = await tree('one', ['dist/index.js', 'node_modules/dep/index.js']);
    expect(await state(root)).toEqual([
      { source: path.join(places.state, 'home'), target: '/home/skep', readOnly: false },
      { source: path.join(places.state, 'package'), target: '/app/node_modules/@s/p', readOnly: false },
      {
        source: path.join(root, 'node_modules/@s/p/node_modules'),
        target: '/app/node_modules/@s/p/node_modules',
        readOnly: true,
      },
    ]);
    expect(await text('dist/index.js')).toBe('one');
  });

  test('finds at its next start what it wrote, and the tree is as it was', async () => {
    const root = await tree('one', ['dist/index.js']);
    await state(root);
    await writeFile(own('dist/memory.jsonl'), 'remembered');
    await writeFile(own('dist/index.js'), 'changed');
    await state(root);
    expect([await text('dist/memory.jsonl'), await text('dist/index.js')]).toEqual(['remembered', 'changed']);
    expect(await readFile(path.join(root, 'node_modules/@s/p/dist/index.js'), 'utf8')).toBe('one');
  });

  test('gets the folder of its package whole at the next start when the first one was interrupted', async () => {
    const root = await tree('one', ['dist/index.js', 'dist/other.js']);
    await mkdir(own('dist'), { recursive: true });
    await writeFile(own('dist/index.js'), 'o');
    await state(root);
    expect([await text('dist/index.js'), await text('dist/other.js')]).toEqual(['one', 'one']);
  });

  test('gets anew what of its package was not on the disk when the machine went down, and keeps what it added', async () => {
    const root = await tree('one', ['dist/index.js', 'dist/other.js']);
    await state(root);
    await writeFile(own('dist/memory.jsonl'), 'remembered');
    await writeFile(own('dist/index.js'), '');
    await rm(own('dist/other.js'));
    await bootAnew();
    await state(root);
    const files = ['dist/index.js', 'dist/other.js', 'dist/memory.jsonl'];
    expect(await Promise.all(files.map(text))).toEqual(['one', 'one', 'remembered']);
    await writeFile(own('dist/index.js'), 'changed');
    await bootAnew();
    await state(root);
    expect(await text('dist/index.js')).toBe('changed');
    await writeFile(own('dist/index.js'), '');
    await state(root);
    expect(await text('dist/index.js')).toBe('');
  });

  test('keeps what it made of the files of its package when others of them are gone at the next boot', async () => {
    const root = await tree('one', ['dist/db.json', 'dist/gone.js', 'lib/gone.js', 'out/gone.js']);
    await symlink('gone.js', path.join(root, 'node_modules/@s/p/dist/link.js'));
    await state(root);
    await writeFile(own('dist/db.json'), 'its own');
    for (const file of ['dist/gone.js', 'dist/link.js', 'lib', 'out'])
      await rm(own(file), { recursive: true });
    const outside = path.join(directory, 'outside');
    await mkdir(outside);
    await symlink(outside, own('out'));
    await bootAnew();
    await state(root);
    expect(await Promise.all(['dist/db.json', 'dist/link.js', 'lib/gone.js'].map(text))).toEqual([
      'its own',
      'one',
      'one',
    ]);
    expect(await readdir(outside)).toEqual([]);
  });

  test('finds in another version what it had added, with the code of that version', async () => {
    await state(await tree('one', ['dist/index.js', 'dist/old.js']));
    await mkdir(own('dist/deep'));
    await writeFile(own('dist/deep/memory.jsonl'), 'remembered');
    await writeFile(own('dist/new.js'), 'its own');
    await state(await tree('two', ['dist/index.js', 'dist/new.js']));
    expect(await text('dist/deep/memory.jsonl')).toBe('remembered');
    expect([await text('dist/index.js'), await text('dist/new.js')]).toEqual(['two', 'two']);
    await expect(lstat(own('dist/old.js'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  const INTERRUPTED: readonly (readonly [when: string, change: (next: string) => Promise<void>])[] = [
    ['before a file was moved', async () => {}],
    [
      'while files were moved',
      (next) => rename(own('dist/memory.jsonl'), path.join(next, 'dist/memory.jsonl')),
    ],
    [
      'before it was in its place',
      async (next) => {
        for (const file of ADDED) await rename(own(file), path.join(next, file));
        await removeFiles(own('.'));
      },
    ],
    [
      'before that was noted',
      async (next) => {
        for (const file of ADDED) await rename(own(file), path.join(next, file));
        await removeFiles(own('.'));
        await rename(next, own('.'));
      },
    ],
  ];
  const ADDED = ['dist/memory.jsonl', 'notes.txt'];
  test.each(
    INTERRUPTED.flatMap(([when, change]) => ['one', 'two'].map((wanted) => [when, wanted, change] as const)),
  )(
    'keeps what it had added where the change to another version was cut short %s, at a start of "%s"',
    async (_when, wanted, change) => {
      const trees = { one: await tree('one', ['dist/index.js']), two: await tree('two', ['dist/index.js']) };
      await state(trees.one);
      for (const file of ADDED) await writeFile(own(file), 'remembered');
      const next = path.join(places.state, 'package.next');
      await mkdir(path.join(next, 'dist'), { recursive: true });
      await writeFile(path.join(next, 'dist/index.js'), 'two');
      const made = JSON.parse(await readFile(places.shipped, 'utf8')) as object;
      const ready = { ...made, next: { reference: 'two', files: ['dist/index.js'] } };
      await writeFile(places.shipped, JSON.stringify(ready));
      await change(next);
      await state(trees[wanted as keyof typeof trees]);
      expect(await text('dist/index.js')).toBe(wanted);
      expect(await Promise.all(ADDED.map(text))).toEqual(['remembered', 'remembered']);
      expect(await readdir(places.state)).toEqual(['home', 'package']);
      expect(JSON.parse(await readFile(places.shipped, 'utf8'))).not.toHaveProperty('next');
    },
  );

  test('has its folder copied anew where an earlier release left none', async () => {
    const root = await tree('one', ['dist/index.js']);
    await state(root);
    await rename(own('.'), path.join(places.state, 'package.next'));
    await state(root);
    expect(await text('dist/index.js')).toBe('one');
    expect(await readdir(places.state)).toEqual(['home', 'package']);
  });
});

describe('a hostile server', () => {
  test('gets nothing of the host by a link where something is put for it', async () => {
    const outside = path.join(directory, 'outside');
    await mkdir(outside);
    const root = await tree('one', ['index.js', 'node_modules/dep/index.js']);
    await state(root);
    await rm(own('node_modules'), { recursive: true });
    await symlink(outside, own('node_modules'));
    await state(root);
    expect((await lstat(own('node_modules'))).isDirectory()).toBe(true);
  });

  test('writes nowhere by a link that another version of its package brings', async () => {
    await state(await tree('one', ['index.js']));
    await mkdir(own('up'));
    await writeFile(own('up/workload.json'), 'hostile');
    const next = await tree('two', ['index.js']);
    await symlink('../..', path.join(next, 'node_modules/@s/p/up'));
    await state(next);
    await expect(lstat(places.spec)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('keeps nothing from starting by directories nested deeper than a path can be', async () => {
    const root = await tree('one', ['index.js']);
    const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    await state(root);
    const nest =
      'for (let n = 0; n < 30; n += 1) { fs.mkdirSync("d".repeat(200)); process.chdir("d".repeat(200)); }';
    execFileSync(process.execPath, ['-e', nest], { cwd: places.state });
    await state(root, owner);
    execFileSync(process.execPath, ['-e', nest], { cwd: own('.') });
    await writeFile(own('notes.txt'), 'remembered');
    const next = await tree('two', ['index.js']);
    await expect(state(next)).rejects.toMatchObject({ code: 'runtime/start-failed' });
    await state(root);
    expect([await text('index.js'), await text('notes.txt')]).toEqual(['one', 'remembered']);
    await removeFiles(own('d'.repeat(200)));
    await state(next);
    expect([await text('index.js'), await text('notes.txt')]).toEqual(['two', 'remembered']);
    await removeFiles(places.directory);
  });

  test('cannot keep what it left from being removed', async () => {
    const root = await tree('one', ['index.js']);
    await state(root);
    await mkdir(own('shut/inner'), { recursive: true });
    await chmod(own('shut'), 0);
    await removeFiles(places.directory);
    await expect(lstat(places.directory)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
