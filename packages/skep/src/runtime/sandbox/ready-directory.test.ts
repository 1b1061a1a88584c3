import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { environmentIn } from './environment.fixture.ts';
import { scratchDirectory } from './own-directories.ts';
import { isCopiedAhead } from './package-copy.ts';
import { treeManifest } from './package-trees.ts';
import { workloadPlaces } from './places.ts';
import { keepReady, readyDirectory } from './ready-directory.ts';
import { removePackage, sweepUnused } from './sweep.ts';

const REFERENCE = 'npm-s-p@1.0.0-0123456789ab';

let directory: string;
let environment: RuntimeEnvironment;
let tree: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-ready-'));
  environment = environmentIn(directory);
  tree = path.join(directory, 'cache/packages', REFERENCE);
  await makeTree();
});
afterEach(() => rm(directory, { recursive: true }));

const code = (): string => path.join(tree, 'node_modules/@s/p/index.js');
async function makeTree(): Promise<void> {
  await mkdir(path.dirname(code()), { recursive: true });
  await writeFile(path.join(tree, 'package.json'), treeManifest('@s/p'));
  await writeFile(code(), 'code');
}
const ready = (): string => readyDirectory(environment, REFERENCE);
const left = (): Promise<string[]> => readdir(path.join(directory, 'data')).catch(() => []);

describe.skipIf(process.platform !== 'linux')('a directory for the next workload of a package', () => {
  test('has its pipes and a copy of its folder, and is taken once', async () => {
    await keepReady(environment, REFERENCE);
    const { ino } = await stat(ready());
    const root = path.join(environment.dataDir, 'sandbox');
    const taken = await scratchDirectory(root, environment, ready());
    expect([(await stat(taken)).ino, path.dirname(taken)]).toEqual([ino, root]);
    const places = workloadPlaces(taken);
    for (const pipe of [places.stdin, places.stdout, places.stderr, places.life])
      expect((await stat(pipe)).isFIFO()).toBe(true);
    expect(await isCopiedAhead(places, tree)).toBe(true);
    expect(await readFile(path.join(places.state, 'package/index.js'), 'utf8')).toBe('code');
    const other = await scratchDirectory(root, environment, ready());
    expect(await readdir(other)).toEqual([]);
  });

  test('stays while it is there, and is made anew where its copy may be lost since', async () => {
    await keepReady(environment, REFERENCE);
    const { ino } = await stat(ready());
    await keepReady(environment, REFERENCE);
    expect((await stat(ready())).ino).toBe(ino);
    const { copied } = workloadPlaces(ready());
    await writeFile(copied, `another-boot ${REFERENCE}`);
    await keepReady(environment, REFERENCE);
    expect(await readFile(copied, 'utf8')).not.toContain('another-boot');
  });

  test('has the code of the package that is there, also where that was fetched anew', async () => {
    await writeFile(code(), 'damaged');
    await keepReady(environment, REFERENCE);
    const other = `${tree}.fetched`;
    await cp(tree, other, { recursive: true });
    await rm(tree, { recursive: true });
    await rename(other, tree);
    await writeFile(code(), 'code');
    expect(await isCopiedAhead(workloadPlaces(ready()), tree)).toBe(false);
    await keepReady(environment, REFERENCE);
    const copy = path.join(workloadPlaces(ready()).state, 'package/index.js');
    expect(await readFile(copy, 'utf8')).toBe('code');
  });

  test('is whole or not there for whoever sweeps while it is made', async () => {
    for (let file = 0; file < 20; file += 1)
      await writeFile(path.join(tree, `node_modules/@s/p/${file}.js`), 'code');
    for (let round = 0; round < 10; round += 1) {
      const made = new AbortController();
      const making = keepReady(environment, REFERENCE).finally(() => made.abort());
      while (!made.signal.aborted) await sweepUnused(environment, new Set([REFERENCE]));
      await making;
      expect(await readdir(path.join(workloadPlaces(ready()).state, 'package'))).toHaveLength(21);
      expect(existsSync(workloadPlaces(ready()).life)).toBe(true);
      await sweepUnused(environment, new Set());
      // The package went, too.
      await makeTree();
      for (let file = 0; file < 20; file += 1)
        await writeFile(path.join(tree, `node_modules/@s/p/${file}.js`), 'code');
    }
  });

  test('that cannot be moved is not taken, and another one is made', async () => {
    await keepReady(environment, REFERENCE);
    const made = await scratchDirectory(
      path.join(environment.dataDir, 'sandbox'),
      environment,
      `${ready()}/x`,
    );
    expect(await readdir(made)).toEqual([]);
    const file = path.join(directory, 'no-directory');
    await writeFile(file, '');
    await scratchDirectory(path.join(environment.dataDir, 'sandbox'), environment, `${file}/x`);
  });

  test.each(['../..', '', '.', 'ghcr.io/a/b:1', '../../cache'])(
    'of %j is none, and nothing goes with that name',
    async (reference) => {
      await keepReady(environment, REFERENCE);
      await removePackage(environment, reference);
      expect([existsSync(ready()), existsSync(tree)]).toEqual([true, true]);
    },
  );

  test('is one, also where two make it at once', async () => {
    await Promise.all([keepReady(environment, REFERENCE), keepReady(environment, REFERENCE)]);
    expect(await readdir(path.dirname(ready()))).toEqual([REFERENCE]);
  });

  test('is not made of what is no package, or not there', async () => {
    for (const reference of ['../packages', 'npm-s-p@2.0.0-0123456789ab', 'ghcr.io/a/b:1'])
      await keepReady(environment, reference);
    expect(await left()).toEqual([]);
  });

  test('goes with its package, whenever that goes', async () => {
    await keepReady(environment, REFERENCE);
    await removePackage(environment, REFERENCE);
    expect([await left(), existsSync(tree)]).toEqual([[], false]);
  });

  test('does not stay where its package is removed while it is made', async () => {
    const making = keepReady(environment, REFERENCE);
    await removePackage(environment, REFERENCE);
    await making;
    expect(await left()).toEqual([]);
  });

  test('is swept with all that nobody uses', async () => {
    await keepReady(environment, REFERENCE);
    await sweepUnused(environment, new Set([REFERENCE]));
    expect(existsSync(ready())).toBe(true);
    await sweepUnused(environment, new Set());
    expect(await left()).toEqual([]);
  });
});
