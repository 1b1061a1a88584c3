import { existsSync, renameSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { bootId } from './linux-process.ts';
import { makeCopies, takeCopy } from './package-copy.ts';
import { treeManifest } from './package-trees.ts';

const REFERENCE = 'npm-s-p@1.0.0-0123456789ab';

let directory: string;
let environment: RuntimeEnvironment;
let packages: string;
let tree: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-copy-'));
  let made = 0;
  environment = {
    env: {},
    home: directory,
    platform: 'linux',
    execPath: process.execPath,
    dataDir: path.join(directory, 'data'),
    cacheDir: path.join(directory, 'cache'),
    owner: 'o',
    randomId: () => String((made += 1)),
  };
  packages = path.join(directory, 'cache/packages');
  tree = path.join(packages, REFERENCE);
  await mkdir(path.join(own(), 'dist'), { recursive: true });
  await writeFile(path.join(tree, 'package.json'), treeManifest('@s/p'));
  await writeFile(path.join(own(), 'dist/index.js'), 'code');
  await symlink('dist/index.js', path.join(own(), 'main.js'));
  await mkdir(path.join(own(), 'node_modules/dep'), { recursive: true });
  await writeFile(path.join(own(), 'node_modules/dep/index.js'), 'of another');
});
afterEach(() => rm(directory, { recursive: true }));

const copyAhead = (around = environment): Promise<void> =>
  makeCopies(around, [{ state: 'running', reference: REFERENCE }]);
const own = (): string => path.join(tree, 'node_modules/@s/p');
const ready = async (): Promise<readonly string[]> =>
  (await readdir(tree)).filter((name) => name.startsWith('.copy'));
const target = (): string => path.join(directory, 'taken');

describe.skipIf(process.platform !== 'linux')('a copy of a package', () => {
  test('is made ahead once, and goes to one workload, whole and without what the package depends on', async () => {
    expect(await takeCopy(tree, target())).toBe(false);
    await Promise.all([copyAhead(), copyAhead()]);
    const [name = ''] = await ready();
    const { ino } = await stat(path.join(tree, name));
    await copyAhead();
    expect(await readdir(packages)).toEqual([REFERENCE]);
    expect(await takeCopy(tree, target())).toBe(true);
    const taken = await stat(target());
    expect([taken.ino, taken.mode & 0o777]).toEqual([ino, 0o755]);
    expect((await readdir(target())).toSorted()).toEqual(['dist', 'main.js']);
    expect(await readFile(path.join(target(), 'main.js'), 'utf8')).toBe('code');
    expect(await takeCopy(tree, path.join(directory, 'again'))).toBe(false);
    expect(existsSync(path.join(directory, 'again'))).toBe(false);
  });

  test('that was made before the machine went down is not used, and makes way for the next', async () => {
    await mkdir(path.join(tree, '.copy-of-an-earlier-boot'));
    expect(await takeCopy(tree, target())).toBe(false);
    await copyAhead();
    expect(await ready()).toEqual([`.copy-${await bootId()}`]);
  });

  test('is no link that a package has left in its place', async () => {
    await symlink('node_modules', path.join(tree, `.copy-${await bootId()}`));
    expect(await takeCopy(tree, target())).toBe(false);
    expect(existsSync(target())).toBe(false);
  });

  test('is not taken where something lies already, nor over it', async () => {
    await copyAhead();
    await mkdir(target());
    await writeFile(path.join(target(), 'left'), '');
    expect(await takeCopy(tree, target())).toBe(false);
    expect(await ready()).toHaveLength(1);
  });

  test('is not made ahead where nothing of the package runs', async () => {
    await makeCopies(environment, [{ state: 'exited', reference: REFERENCE }]);
    expect(await ready()).toEqual([]);
  });

  test('is not made ahead of a package that is large, gone, or whose servers get none', async () => {
    await writeFile(path.join(own(), 'model.bin'), Buffer.alloc(33 * 1024 * 1024));
    await copyAhead();
    expect(await ready()).toEqual([]);
    await rm(path.join(own(), 'model.bin'));
    await writeFile(
      path.join(tree, 'skep.json'),
      JSON.stringify({ command: ['/app/bin/server'], env: {}, needs: [] }),
    );
    await copyAhead();
    expect(await ready()).toEqual([]);
    await rm(tree, { recursive: true });
    await copyAhead();
    expect(existsSync(tree)).toBe(false);
  });

  test('leaves nothing where the package is removed meanwhile', async () => {
    const removing = {
      ...environment,
      randomId() {
        renameSync(tree, path.join(directory, 'removed'));
        return '1';
      },
    };
    await copyAhead(removing);
    expect(existsSync(packages)).toBe(false);
  });
});
