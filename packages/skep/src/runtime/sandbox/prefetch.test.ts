import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import type { PackageSource, Report } from '../runtime.ts';
import type { Bubblewrap } from './bubblewrap.ts';
import { prefetchNpm } from './prefetch.ts';

const report: Report = { step() {}, detail() {} };

it('asks no registry for an exact version that is there already', async () => {
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
    const fetch = () =>
      prefetchNpm(environment, {} as Bubblewrap, { source, report, signal: new AbortController().signal });
    await expect(fetch()).rejects.toMatchObject({ code: 'runtime/prefetch-failed' });
    const tree = 'npm-x@1.2.3-3a823bfde475';
    await mkdir(path.join(cacheDir, 'packages', tree), { recursive: true });
    expect(await fetch()).toBe(tree);
    expect(await readdir(path.join(cacheDir, 'packages'))).toEqual([tree]);
  } finally {
    await rm(cacheDir, { recursive: true });
  }
});
