import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findBubblewrap } from './bubblewrap.ts';

const asRoot = process.getuid?.() === 0;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-bwrap-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** Looks for bubblewrap where a program of that name does this with the command that it is given as "$@". */
async function find(script: string) {
  const file = path.join(directory, 'bwrap');
  const options = 'while [ "$1" != -- ]; do shift; done; shift';
  const version = '[ "$1" != --version ] || { echo bubblewrap 0.8.0; exit; }';
  await writeFile(file, `#!/bin/sh\n${version}\n${options}\n${script}\n`);
  await chmod(file, 0o755);
  return findBubblewrap({
    env: { PATH: `${directory}:${process.env['PATH']}` },
    platform: process.platform,
    cacheDir: directory,
  });
}

/** What stands where our own setpriv is inside, with its options, up to the program. */
const WITHOUT_SETPRIV = 'while [ "$1" != /bin/sh ]; do shift; done';

/** There is none of that file outside, which takes variables, too. */
const WITHOUT_BEGIN =
  'for one; do shift; case "$one" in /skep/begin) set -- "$@" env ;; *) set -- "$@" "$one" ;; esac; done';

describe.skipIf(process.platform !== 'linux')('a bubblewrap that does not confine is not used', () => {
  test.each([
    [
      'starts the program as who called it',
      `${WITHOUT_SETPRIV}; exec "$@"`,
      asRoot ? 'is root' : 'capabilities',
    ],
    ['starts nothing and says why', 'echo "no namespaces here" >&2; exit 1', 'no namespaces here'],
    ['starts nothing and says nothing', 'exit 1', 'it gave no reason'],
  ])('because it %s', async (_what, script, said) => {
    await expect(find(script)).rejects.toMatchObject({
      code: 'runtime/sandbox-unavailable',
      message: expect.stringContaining(said),
    });
  });

  test.skipIf(!asRoot)('because it takes every right away and filters no system call', async () => {
    await expect(find(`shift; ${WITHOUT_BEGIN}; exec setpriv "$@"`)).rejects.toMatchObject({
      code: 'runtime/sandbox-unavailable',
      message: expect.stringContaining('system calls are not filtered'),
    });
  });
});

test('the sandbox is told not to be there on another system, with what is', async () => {
  const search = { env: {}, platform: 'darwin', cacheDir: directory } as const;
  await expect(findBubblewrap(search)).rejects.toMatchObject({
    message: 'the sandbox is not available on "darwin" yet',
    hint: 'start a container engine',
  });
});

test.skipIf(process.platform !== 'linux')(
  'a mount of this machine that goes while bubblewrap is tried does not make it one that cannot be used',
  async () => {
    const gone = "Can't find source path /var/lib/engine/merged: No such file or directory";
    const once = `[ -e "$0.tried" ] || { : >"$0.tried"; echo "${gone}" >&2; exit 1; }`;
    expect(await find(once)).toMatchObject({ program: path.join(directory, 'bwrap') });
  },
);
