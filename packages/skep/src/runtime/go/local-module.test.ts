import { execFileSync } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { copyTo, findLocalModule, localVersion } from './local-module.ts';

const { signal } = new AbortController();
let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(path.join(tmpdir(), 'skep-module-')));
  await mkdir(path.join(root, 'cmd/server'), { recursive: true });
  await writeFile(path.join(root, 'go.mod'), 'module example.test/x\n');
  await writeFile(path.join(root, 'cmd/server/main.go'), 'package main\n');
});
afterEach(() => rm(root, { recursive: true }));

describe('the module of a directory', () => {
  test('is that of the nearest go.mod upwards', async () => {
    expect(await findLocalModule(root)).toEqual({ root, target: '.' });
    expect(await findLocalModule(path.join(root, 'cmd/server'))).toEqual({ root, target: './cmd/server' });
    await writeFile(path.join(root, 'cmd/go.mod'), 'module example.test/y\n');
    const inner = { root: path.join(root, 'cmd'), target: './server' };
    expect(await findLocalModule(path.join(root, 'cmd/server'))).toEqual(inner);
    await symlink('cmd/server', path.join(root, 'link'));
    expect(await findLocalModule(path.join(root, 'link'))).toEqual(inner);
  });

  test('is missing by name', async () => {
    await expect(findLocalModule(path.join(root, 'absent'))).rejects.toMatchObject({
      code: 'runtime/package-not-found',
      message: `source path "${root}/absent" does not exist`,
    });
    await expect(findLocalModule(path.join(root, 'go.mod'))).rejects.toThrow('is no directory');
    await rename(path.join(root, 'go.mod'), path.join(root, 'go.mod.old'));
    await expect(findLocalModule(root)).rejects.toThrow(`"${root}" belongs to no Go module`);
  });
});

describe('the version of a module of this machine', () => {
  test('is another one with every change of a file, and the same without', async () => {
    const seen = new Set<string>();
    const changes: readonly (() => Promise<unknown>)[] = [
      async () => {},
      () => writeFile(path.join(root, 'cmd/server/main.go'), 'package main // changed\n'),
      () => writeFile(path.join(root, 'x'), ''),
      () => rename(path.join(root, 'x'), path.join(root, 'y')),
      () => mkdir(path.join(root, 'empty')),
      () => symlink('/etc/hostname', path.join(root, 'link')),
    ];
    for (const change of changes) {
      await change();
      const version = await localVersion({ root }, signal);
      expect(version).toMatch(/^src-[0-9a-f]{16}$/);
      expect(await localVersion({ root }, signal)).toBe(version);
      expect(seen.has(version)).toBe(false);
      seen.add(version);
    }
  });

  test('comes with a copy without history, in which links are links and nothing else was followed', async () => {
    await mkdir(path.join(root, '.git'));
    await writeFile(path.join(root, '.git/config'), 'token');
    const before = await localVersion({ root }, signal);
    await writeFile(path.join(root, '.git/config'), 'another');
    expect(await localVersion({ root }, signal)).toBe(before);
    await symlink('/etc/hostname', path.join(root, 'link'));
    execFileSync('mkfifo', [path.join(root, 'pipe')]);
    const copy = await mkdtemp(path.join(tmpdir(), 'skep-copy-'));
    try {
      const version = await localVersion({ root }, signal, copyTo(copy));
      expect((await readdir(copy)).toSorted()).toEqual(['cmd', 'go.mod', 'link']);
      expect(await readlink(path.join(copy, 'link'))).toBe('/etc/hostname');
      expect(await readFile(path.join(copy, 'cmd/server/main.go'), 'utf8')).toBe('package main\n');
      expect(await localVersion({ root: copy }, signal)).toBe(version);
    } finally {
      await rm(copy, { recursive: true });
    }
  });

  test('is not looked for in more than anybody writes by hand, of which nothing is read', async () => {
    await writeFile(path.join(root, 'large'), '');
    await truncate(path.join(root, 'large'), 1024 ** 3 + 1);
    await expect(localVersion({ root }, signal)).rejects.toMatchObject({
      code: 'runtime/prefetch-failed',
      message: `the module at "${root}" is too large: more than 100,000 files or 1 GiB`,
    });
  });

  test('stops when asked to', async () => {
    await expect(localVersion({ root }, AbortSignal.abort())).rejects.toMatchObject({
      code: 'runtime/aborted',
    });
  });

  test.skipIf(process.getuid?.() === 0)('names what cannot be read', async () => {
    await chmod(path.join(root, 'go.mod'), 0);
    await expect(localVersion({ root }, signal)).rejects.toThrow(`"${root}/go.mod" cannot be read: EACCES`);
  });
});
