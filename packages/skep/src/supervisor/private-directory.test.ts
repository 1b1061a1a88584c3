import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeEmpty } from '@skep/core/files/atomic-write.ts';
import { places, type Places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureOwn, refuseForeign, whyNotPrivate } from './private-directory.ts';

const uid = process.getuid?.();
const stranger = (uid ?? 0) + 1;
let home: string;
let where: Places;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-private-'));
  where = places({ env: {}, home, platform: 'linux', temp: home });
});
afterEach(() => rm(home, { recursive: true }));

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
const untrusted = { code: 'supervisor/unreachable' };

describe('the directory of the supervisor', () => {
  test('is made for its user alone', async () => {
    await ensureOwn(where, uid);
    expect(await modeOf(where.supervisorDir)).toBe(0o700);
    await ensureOwn(where, uid);
  });

  test.each([0o755, 0o770, 0o777])('is closed to others where it was %o', async (mode) => {
    await mkdir(where.supervisorDir, { recursive: true });
    await chmod(where.supervisorDir, mode);
    await ensureOwn(where, uid);
    expect(await modeOf(where.supervisorDir)).toBe(0o700);
  });

  test('is made again where a supervisor that ends takes it along', async () => {
    for (let round = 0; round < 200; round += 1) {
      await Promise.all([ensureOwn(where, uid), removeEmpty(where.supervisorDir)]);
      await removeEmpty(where.supervisorDir);
    }
  });

  test('is refused where something else stands in its place', async () => {
    await mkdir(where.stateDir, { recursive: true });
    await writeFile(where.supervisorDir, '');
    await expect(ensureOwn(where, uid)).rejects.toMatchObject({
      ...untrusted,
      message: expect.stringContaining('it is not a directory') as unknown,
    });
  });

  test('is refused where a link leads elsewhere, wherever that is', async () => {
    await mkdir(where.stateDir, { recursive: true });
    await mkdir(join(home, 'elsewhere'), { mode: 0o700 });
    await symlink(join(home, 'elsewhere'), where.supervisorDir);
    await expect(ensureOwn(where, uid)).rejects.toMatchObject(untrusted);
    expect(whyNotPrivate(where.supervisorDir, uid)).toBe('it is not a directory');
  });

  test('is refused where it belongs to another user, and nothing of it is changed', async () => {
    await mkdir(where.supervisorDir, { recursive: true, mode: 0o755 });
    await chmod(where.supervisorDir, 0o755);
    await expect(ensureOwn(where, stranger)).rejects.toMatchObject({
      ...untrusted,
      message: expect.stringContaining('it belongs to another user') as unknown,
      hint: expect.stringContaining('XDG_STATE_HOME') as unknown,
    });
    expect(await modeOf(where.supervisorDir)).toBe(0o755);
  });

  test('is taken as it is where the system knows no users', async () => {
    await ensureOwn(where, undefined);
    expect(whyNotPrivate('/nowhere', undefined)).toBeUndefined();
  });
});

describe('state and data', () => {
  test.each(['stateDir', 'dataDir'] as const)('of another user are refused (%s)', async (which) => {
    await mkdir(where[which], { recursive: true });
    refuseForeign(where, uid);
    expect(() => refuseForeign(where, stranger)).toThrow(expect.objectContaining(untrusted));
    refuseForeign(where, undefined);
  });

  test('that are not there yet are fine', async () => {
    refuseForeign(where, stranger);
  });
});

describe('a place for a socket', () => {
  test.each([
    [0o700, undefined],
    [0o500, undefined],
    [0o710, 'others may enter it'],
    [0o701, 'others may enter it'],
    [0o777, 'others may enter it'],
  ])('with mode %o: %s', async (mode, why) => {
    const path = join(home, 'socket');
    await mkdir(path);
    await chmod(path, mode);
    expect(whyNotPrivate(path, uid)).toBe(why);
    expect(whyNotPrivate(path, stranger)).toBe('it belongs to another user');
    await chmod(path, 0o700);
  });

  test('that is not there is none', async () => {
    expect(whyNotPrivate(join(home, 'absent'), uid)).toBe('ENOENT');
  });
});
