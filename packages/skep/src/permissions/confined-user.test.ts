import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseConfinedUser } from './confined-user-name.ts';
import { closedMounts, confinedUser } from './confined-user.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skep-user-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** A directory with this mode, of this owner where tests run as root. */
async function folder(name: string, mode: number, uid?: number): Promise<string> {
  const path = join(directory, name);
  await mkdir(path);
  await chmod(path, mode);
  if (uid !== undefined) await chown(path, uid, uid);
  return path;
}
const isRoot = process.getuid?.() === 0;
const mount = (source: string, readOnly = true) => ({ source, target: '/x', readOnly });

describe('who a program runs as', () => {
  test.each([
    ['root', { uid: 0, gid: 0 }],
    ['1000', { uid: 1000, gid: 1000 }],
    ['1000:100', { uid: 1000, gid: 100 }],
    ['0:0', { uid: 0, gid: 0 }],
    ['4294967294', { uid: 4_294_967_294, gid: 4_294_967_294 }],
  ])('is the person’s word: %s', async (wanted, user) => {
    expect(await confinedUser({ asRoot: true, name: 'a', mounts: [], wanted })).toEqual(user);
  });

  test.each([
    '',
    'me',
    '-1',
    '1:',
    ':1',
    '1:me',
    '1.5',
    '4294967295',
    '1:4294967295',
    '99999999999',
    ' 1',
    '1 ',
  ])('is never read from "%s"', (text) => {
    expect(() => parseConfinedUser(text)).toThrow(expect.objectContaining({ code: 'usage/invalid-value' }));
  });

  test('is never a number that the kernel takes for "unchanged", whatever is written', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.nat().map(String), fc.bigInt({ min: 0n }).map(String)), (text) => {
        try {
          const { uid, gid } = parseConfinedUser(text);
          for (const id of [uid, gid]) expect(id >= 0 && id < 0xffffffff && Number.isInteger(id)).toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ code: 'usage/invalid-value' });
        }
      }),
    );
  });

  test('is an ordinary one where no root starts it', async () => {
    expect(await confinedUser({ asRoot: false, name: 'a', mounts: [] })).toEqual({ uid: 1000, gid: 1000 });
  });

  test('is one that owns nothing here where root starts it, another for each name', async () => {
    const of = (name: string) => confinedUser({ asRoot: true, name, mounts: [] });
    const [one, again, other] = [await of('a1'), await of('a1'), await of('a2')];
    expect(one).toEqual(again);
    expect(one).not.toEqual(other);
    for (const { uid } of [one, other]) expect(uid >= 60_706 && uid < 60_706 + 478).toBe(true);
  });

  test.runIf(isRoot)('is the owner of what it may write, so that mounts work, and never root', async () => {
    const theirs = await folder('theirs', 0o755, 1234);
    const ours = await folder('ours', 0o755, 0);
    const asRoot = { asRoot: true, name: 'a' };
    expect(await confinedUser({ ...asRoot, mounts: [mount(theirs, false)] })).toEqual({
      uid: 1234,
      gid: 1234,
    });
    // Everybody may read it, so nobody in particular has to.
    expect((await confinedUser({ ...asRoot, mounts: [mount(theirs)] })).uid).not.toBe(1234);
    expect((await confinedUser({ ...asRoot, mounts: [mount(ours, false)] })).uid).not.toBe(0);
  });

  test('is found without a source that is not there, which is refused elsewhere', async () => {
    const mounts = [mount(join(directory, 'absent'), false), mount('/etc/passwd/x')];
    expect((await confinedUser({ asRoot: true, name: 'a', mounts })).uid).toBeGreaterThan(0);
  });
});

describe('mounts that a user may not use', () => {
  test('are told, one phrase each, by what is asked of them', async () => {
    const uid = process.getuid?.() ?? 0;
    const stranger = { uid: uid + 4321, gid: (process.getgid?.() ?? 0) + 4321 };
    const closed = await folder('closed', 0o700);
    const readable = await folder('readable', 0o755);
    const open = await folder('open', 0o777);
    const absent = join(directory, 'gone');
    expect(
      await closedMounts(stranger, [
        mount(closed),
        mount(readable),
        mount(readable, false),
        mount(open, false),
        mount(absent),
      ]),
    ).toEqual([`may not read "${closed}"`, `may only read "${readable}"`]);
  });

  test('are none for their owner, whom the first digit is about, and none for root', async () => {
    const path = await folder('own', 0o700);
    const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
    expect(await closedMounts({ uid, gid }, [mount(path, false)])).toEqual([]);
    expect(await closedMounts({ uid: 0, gid: 0 }, [mount(path, false)])).toEqual([]);
  });

  test.runIf(isRoot)('are those of the group by the second digit', async () => {
    const path = await folder('grouped', 0o750, 1234);
    expect(await closedMounts({ uid: 1, gid: 1234 }, [mount(path)])).toEqual([]);
    expect(await closedMounts({ uid: 1, gid: 1234 }, [mount(path, false)])).toEqual([
      `may only read "${path}"`,
    ]);
    expect(await closedMounts({ uid: 1, gid: 1 }, [mount(path)])).toEqual([`may not read "${path}"`]);
  });
});
