import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { assertAllowed, isAllowedPath } from './allowed-path.ts';

describe('isAllowedPath', () => {
  test.each([
    ['/data/c.json', ['/data'], true],
    ['/data', ['/data'], true],
    ['/data/..c.json', ['/data/'], true],
    ['/data/../etc/passwd', ['/data'], false],
    ['/database/c.json', ['/data'], false],
    ['/other/c.json', ['/data', '/other'], true],
    ['/data/c.json', [], false],
  ])('%s in %j: %j', (path, folders, expected) => {
    expect(isAllowedPath(path, folders)).toBe(expected);
  });
});

describe('assertAllowed', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'skep-allowed-')));
    await mkdir(join(folder, 'in'));
    await writeFile(join(folder, 'secret'), 'x');
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('does not follow a link out of the folder', async () => {
    await symlink(join(folder, 'secret'), join(folder, 'in', 'link'));
    await expect(assertAllowed(join(folder, 'in', 'link'), [join(folder, 'in')])).rejects.toMatchObject({
      code: 'source/path-not-allowed',
    });
  });

  test('admits a folder that is itself a link', async () => {
    await symlink(join(folder, 'in'), join(folder, 'alias'));
    await writeFile(join(folder, 'in', 'c.json'), '[]');
    await expect(
      assertAllowed(join(folder, 'alias', 'c.json'), [join(folder, 'alias')]),
    ).resolves.toBeUndefined();
  });
});
