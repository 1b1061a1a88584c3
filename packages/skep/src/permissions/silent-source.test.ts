import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { checkMountSources } from './mounts.ts';
import { silentSource } from './silent-source.ts';

/** Asks as the shell does; a path with "dead" in it lies on a file system that does not answer. */
const SHELL = `#!/bin/sh
echo asked >> "\${0%/*}/asked"
shift 3
for source; do
  case $source in *dead*) exec /bin/sleep 600 ;; esac
  echo
done
`;

let home: string;
let shell: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-silent-'));
  shell = join(home, 'sh');
  await writeFile(shell, SHELL);
  await chmod(shell, 0o700);
});
afterEach(() => rm(home, { recursive: true }));

test('what is there, what is not and a link into nothing answer, whatever their names are', async () => {
  await writeFile(join(home, "it's a file\n"), '');
  await symlink(join(home, 'nothing'), join(home, '-e'));
  const names = ["it's a file\n", '-e', 'absent', '$(exit)', '!'];
  expect(await silentSource(names.map((name) => join(home, name)))).toBeUndefined();
  expect(await silentSource([])).toBeUndefined();
});

test('a file system that does not answer is waited for a while, and named', async () => {
  const dead = join(home, 'dead');
  expect(await silentSource([dead, home], { shell, patienceMs: 50 })).toBe(dead);
  // The process that waited for it is gone in the end.
  await vi.waitFor(async () => {
    expect(await silentSource([dead])).toBeUndefined();
  });
});

test('a start whose mount lies on such a file system is refused, with what it is', async () => {
  const source = join(home, 'dead/data');
  const refused = checkMountSources(
    'a1',
    [{ source, target: '/data', readOnly: true }],
    {},
    { shell, patienceMs: 50 },
  );
  await expect(refused).rejects.toMatchObject({
    code: 'run/source-silent',
    message: `mount source "${source}" lies on a file system that does not answer`,
    hint: expect.stringContaining('bring back'),
  });
});

test('an empty set of mounts costs no process', async () => {
  await checkMountSources('a1', [], {}, { shell });
  await expect(rm(join(home, 'asked'))).rejects.toThrow('ENOENT');
});
