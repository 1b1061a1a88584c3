import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { removeFiles, removeWhole, scratchDirectory } from './own-directories.ts';

test('removes what a killed command left, and nothing that one is still making', async () => {
  const parent = await mkdtemp(path.join(tmpdir(), 'skep-scratch-'));
  let count = 0;
  const environment = { randomId: () => String((count += 1)) } as RuntimeEnvironment;
  try {
    const mine = await scratchDirectory(parent, environment);
    // This process's number, but not its start; the name that earlier releases gave; a package.
    const [, pid] = /^\.(\d+)-/.exec(path.basename(mine)) ?? [];
    for (const name of [`.${pid}-1-x`, '.0123456789abcdef', 'npm-x@1.0.0-0123456789ab']) {
      await mkdir(path.join(parent, name, 'deep'), { recursive: true });
    }
    const next = await scratchDirectory(parent, environment);
    const left = [mine, next].map((one) => path.basename(one));
    expect((await readdir(parent)).toSorted()).toEqual([...left, 'npm-x@1.0.0-0123456789ab'].toSorted());
  } finally {
    await rm(parent, { recursive: true });
  }
});

test('makes one while what was last below the same parent is removed, and the parent with it', async () => {
  const parent = path.join(await mkdtemp(path.join(tmpdir(), 'skep-scratch-')), 'sandbox');
  let count = 0;
  const environment = { randomId: () => String((count += 1)) } as RuntimeEnvironment;
  try {
    for (let round = 0; round < 300; round += 1) {
      await mkdir(path.join(parent, 'last'), { recursive: true });
      // What a killed command left is swept first, which is when the parent becomes empty.
      await mkdir(path.join(parent, `.1-1-${round}`));
      const making = scratchDirectory(parent, environment);
      await Promise.all([making, removeWhole(parent, 'last', environment)]);
      const made = path.basename(await making);
      expect(await readdir(parent)).toContain(made);
      await removeWhole(parent, made, environment);
    }
  } finally {
    await rm(path.dirname(parent), { recursive: true });
  }
});

test('removes what another process removes too, though it is nested deeper than a path can be', async () => {
  const parent = await mkdtemp(path.join(tmpdir(), 'skep-scratch-'));
  const nest =
    'for (let n = 0; n < 30; n += 1) { for (let m = 0; m < 20; m += 1) fs.writeFileSync(`${m}`, ""); fs.mkdirSync("d".repeat(200)); process.chdir("d".repeat(200)); }';
  try {
    for (let round = 0; round < 4; round += 1) {
      const directory = path.join(parent, String(round));
      await mkdir(directory);
      execFileSync(process.execPath, ['-e', nest], { cwd: directory });
      await Promise.all([removeFiles(directory), removeFiles(directory), removeFiles(directory)]);
      expect(await readdir(parent)).toEqual([]);
    }
  } finally {
    await rm(parent, { recursive: true });
  }
});
