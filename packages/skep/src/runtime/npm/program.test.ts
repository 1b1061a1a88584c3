import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defaultRegistry, findNpm } from './program.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-npm-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

test('finds the npm on the PATH and leaves wrappers of version managers alone', async () => {
  const file = path.join(directory, 'npm/bin/npm-cli.js');
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, '');
  const [wrappers, bin] = await Promise.all(['w', 'b'].map((name) => mkdtemp(path.join(directory, name))));
  await writeFile(path.join(wrappers ?? '', 'npm'), '#!/bin/sh');
  await symlink(file, path.join(bin ?? '', 'npm'));
  const env = { PATH: `relative:${wrappers}:${bin}` };
  expect(await findNpm({ env, execPath: '/nowhere/bin/node' })).toBe(file);
});

test('says so when there is none', async () => {
  const empty = await mkdtemp(path.join(directory, 'empty'));
  await expect(findNpm({ env: { PATH: empty }, execPath: '/nowhere/bin/node' })).rejects.toMatchObject({
    code: 'runtime/npm-missing',
  });
});

test('asks npm for its registry without a home directory, which a user id without a name does not have', async () => {
  const bin = path.join(directory, 'asked/bin');
  await mkdir(bin, { recursive: true });
  // As npm does at its start; without HOME it would ask the system who the user is.
  const asks = `const { HOME } = process.env;
    if (HOME === undefined || require('node:fs').existsSync(HOME + '/.')) process.exit(1);
    console.log('https://registry.test/');`;
  await writeFile(path.join(bin, 'npm-cli.js'), asks);
  await symlink(path.join(bin, 'npm-cli.js'), path.join(bin, 'npm'));
  const search = { env: { PATH: bin }, execPath: process.execPath };
  expect(await defaultRegistry(search)).toBe('https://registry.test/');
});
