import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import type { Report } from '../runtime.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { Bubblewrap } from './confine.ts';
import { packageCommand, packageHome } from './package-trees.ts';
import { writeManifest } from './npm-package.ts';
import { moveIntoPlace } from './own-directories.ts';
import { SandboxRuntime } from './sandbox-runtime.ts';

const report: Report = { step() {}, detail() {} };

test('asks no registry for an exact version that is there already', async () => {
  const cacheDir = await mkdtemp(path.join(tmpdir(), 'skep-prefetch-'));
  try {
    // Nothing listens there, so asking fails.
    const env = { npm_config_registry: 'http://127.0.0.1:1/' };
    const environment = {
      env,
      home: cacheDir,
      execPath: '/nowhere/bin/node',
      cacheDir,
    } as unknown as RuntimeEnvironment;
    const source: PackageSource = { kind: 'package', ecosystem: 'npm', name: 'x', version: '1.2.3' };
    const runtime = new SandboxRuntime(environment, {} as Bubblewrap);
    const { signal } = new AbortController();
    const fetch = () => runtime.prepare({ source, addPackages: [], report, signal });
    await expect(fetch()).rejects.toMatchObject({ code: 'runtime/prefetch-failed' });
    const tree = 'npm-x@1.2.3-3a823bfde475';
    await mkdir(path.join(cacheDir, 'packages', tree), { recursive: true });
    expect(await fetch()).toMatchObject({ reference: tree });
    expect(await readdir(path.join(cacheDir, 'packages'))).toEqual([tree]);
  } finally {
    await rm(cacheDir, { recursive: true });
  }
});

test('reads no file beyond the tree that a rewritten manifest of the tree names', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'skep-prefetch-'));
  try {
    const tree = path.join(directory, 'tree');
    await mkdir(tree);
    const manifest = path.join(tree, 'package.json');
    await writeFile(manifest, JSON.stringify({ skep: { package: '../../../secret' } }));
    for (const read of [packageHome, packageCommand]) {
      await expect(read(tree)).rejects.toMatchObject({ code: 'runtime/package-not-found' });
    }
    const outside = path.join(directory, 'outside');
    await writeFile(outside, 'kept');
    await rm(manifest);
    await symlink(outside, manifest);
    await writeManifest(tree, 'x');
    expect(await packageHome(tree)).toBe('node_modules/x');
    expect(await readFile(outside, 'utf8')).toBe('kept');
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('a tree gets its name also where the system cannot wait for its disk', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'skep-prefetch-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(path.join(directory, 'sync'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  const [tree, target] = [path.join(directory, 'tree'), path.join(directory, 'target')];
  await mkdir(tree);
  await moveIntoPlace(tree, target, { env: { PATH: directory } });
  expect(await readdir(directory)).toEqual(['sync', 'target']);
});
