import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { environmentIn } from './environment.fixture.ts';
import { copyAhead, copyOf, dropOtherCopy, isCopiedAhead } from './package-copy.ts';
import { treeManifest } from './package-trees.ts';
import { workloadPlaces, type WorkloadPlaces } from './places.ts';

const REFERENCE = 'npm-s-p@1.0.0-0123456789ab';
const OTHER = 'npm-s-p@2.0.0-0123456789ab';

let directory: string;
let environment: RuntimeEnvironment;
let tree: string;
let places: WorkloadPlaces;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-copy-'));
  environment = environmentIn(directory);
  tree = path.join(directory, 'cache/packages', REFERENCE);
  places = workloadPlaces(path.join(directory, 'data/ahead'));
  await mkdir(places.directory, { recursive: true });
  await mkdir(path.join(own(), 'dist'), { recursive: true });
  await writeFile(path.join(tree, 'package.json'), treeManifest('@s/p'));
  await writeFile(path.join(own(), 'dist/index.js'), 'code');
  await symlink('dist/index.js', path.join(own(), 'main.js'));
  await mkdir(path.join(own(), 'node_modules/dep'), { recursive: true });
  await writeFile(path.join(own(), 'node_modules/dep/index.js'), 'of another');
});
afterEach(() => rm(directory, { recursive: true }));

const own = (): string => path.join(tree, 'node_modules/@s/p');
const made = (): Promise<readonly string[]> => readdir(places.directory);

describe.skipIf(process.platform !== 'linux')('a copy that is made ahead', () => {
  test('is whole, but for what the package depends on, and of that package alone', async () => {
    await copyAhead(environment, REFERENCE, places);
    expect((await readdir(copyOf(places))).toSorted()).toEqual(['dist', 'main.js']);
    expect(await readFile(path.join(copyOf(places), 'main.js'), 'utf8')).toBe('code');
    expect((await stat(copyOf(places))).mode & 0o777).toBe(0o755);
    const other = path.join(path.dirname(tree), OTHER);
    expect([await isCopiedAhead(places, tree), await isCopiedAhead(places, other)]).toEqual([true, false]);
  });

  test('goes where something else is run', async () => {
    await copyAhead(environment, REFERENCE, places);
    await dropOtherCopy(places, tree);
    expect((await made()).toSorted()).toEqual(['copied', 'state']);
    await dropOtherCopy(places, path.join(path.dirname(tree), OTHER));
    expect(await made()).toEqual([]);
  });

  test('is none after the machine went down, when it may be empty', async () => {
    await copyAhead(environment, REFERENCE, places);
    const note = await readFile(places.copied, 'utf8');
    await writeFile(places.copied, note.replace(/^\S+/, 'another-boot'));
    expect(await isCopiedAhead(places, tree)).toBe(false);
  });

  test('is not made of a package that is large, has many files, is gone, or whose servers get none', async () => {
    await writeFile(path.join(own(), 'model.bin'), randomBytes(33 * 1024 * 1024));
    await copyAhead(environment, REFERENCE, places);
    await rm(path.join(own(), 'model.bin'));
    await mkdir(path.join(own(), 'many'));
    for (let file = 0; file < 1_001; file += 1) await writeFile(path.join(own(), 'many', `${file}`), '');
    await copyAhead(environment, REFERENCE, places);
    await rm(path.join(own(), 'many'), { recursive: true });
    await writeFile(
      path.join(tree, 'skep.json'),
      JSON.stringify({ command: ['/app/bin/server'], env: {}, needs: [] }),
    );
    await copyAhead(environment, REFERENCE, places);
    await rm(tree, { recursive: true });
    await copyAhead(environment, REFERENCE, places);
    expect(await made()).toEqual([]);
    expect(existsSync(tree)).toBe(false);
  });

  test('leaves nothing where it fails on the way', async () => {
    await mkdir(places.copied);
    await copyAhead(environment, REFERENCE, places);
    expect(await made()).toEqual(['copied']);
    await rm(places.copied, { recursive: true });
    await mkdir(places.state);
    await writeFile(copyOf(places), 'in its place');
    await copyAhead(environment, REFERENCE, places);
    expect(await made()).toEqual([]);
  });
});
