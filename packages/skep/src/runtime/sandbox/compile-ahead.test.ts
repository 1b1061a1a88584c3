import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { compiledAhead, keepCompiled } from './compile-ahead.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-compiled-'));
});
afterEach(() => rm(directory, { recursive: true }));

const user = { uid: 60_710, gid: 60_710 };
const tag = 'v24.1.0-x64-0a1b2c3d';

/** What a server left, in the directory of the user it ran as, and what was kept of it. */
async function kept(leave: (left: string) => Promise<unknown>, name = `${tag}-60999`): Promise<string[]> {
  const from = path.join(directory, 'left');
  await mkdir(path.join(from, name), { recursive: true });
  await leave(path.join(from, name));
  await keepCompiled(from, path.join(directory, '.compiled'));
  return readdir(path.join(directory, '.compiled', tag)).catch(() => []);
}

test('a package for which nothing was compiled is started as it is', async () => {
  expect(await compiledAhead(directory, user)).toEqual({ mounts: [], env: {} });
});

test('what was compiled is found by a server under the number of its own user, to be read only', async () => {
  expect(await kept((left) => writeFile(path.join(left, '9f8e7d6c'), 'code'))).toEqual(['9f8e7d6c']);
  const source = path.join(directory, '.compiled', tag);
  expect(await compiledAhead(directory, user)).toEqual({
    mounts: [{ source, target: `/skep/compiled/${tag}-60710`, readOnly: true }],
    env: { NODE_COMPILE_CACHE: '/skep/compiled' },
  });
  expect(await readFile(path.join(source, '9f8e7d6c'), 'utf8')).toBe('code');
});

test('a link is not followed', async () => {
  const secret = path.join(directory, 'secret');
  await writeFile(secret, 'secret');
  await expect(kept((left) => symlink(secret, path.join(left, 'aa')))).rejects.toMatchObject({
    code: 'runtime/prefetch-failed',
  });
});

test('a link in place of the directory is not followed', async () => {
  const from = path.join(directory, 'left');
  await mkdir(from);
  await mkdir(path.join(directory, 'elsewhere'));
  await symlink(path.join(directory, 'elsewhere'), path.join(from, `${tag}-1`));
  await keepCompiled(from, path.join(directory, '.compiled'));
  expect(await readdir(directory)).not.toContain('.compiled');
});

test('other names, other things and more than there is room for are left', async () => {
  expect(await kept((left) => writeFile(path.join(left, '..hidden'), ''))).toEqual([]);
  await rm(path.join(directory, 'left'), { recursive: true });
  expect(await kept((left) => writeFile(path.join(left, 'aa'), ''), '../out-1'.replace('/', '_'))).toEqual(
    [],
  );
  await rm(path.join(directory, 'left'), { recursive: true });
  const large = async (left: string): Promise<void> => {
    await mkdir(path.join(left, 'bb'));
    await writeFile(path.join(left, 'aa'), '');
    await truncate(path.join(left, 'aa'), 65 * 1024 * 1024);
    await writeFile(path.join(left, 'cc'), 'kept');
  };
  expect(await kept(large)).toEqual(['cc']);
});
