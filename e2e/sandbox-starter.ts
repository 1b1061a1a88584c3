// Run in a process of its own, also as another user than the tests, to be killed by them: starts a program in a sandbox
// that prints how its system calls are filtered, says "begun", and waits. Arguments: a directory of this user's; what to
// do: `go` lets the program go, `hold` does not, `long` hands bubblewrap, which begins to read when something is written
// to the pipe `gate` in that directory, more options than any pipe takes at once.
import path from 'node:path';
import { confinedUser } from '@skep/cli/permissions/confined-user.ts';
import { findBubblewrap } from '@skep/cli/runtime/sandbox/bubblewrap.ts';
import { startConfined } from '@skep/cli/runtime/sandbox/confine.ts';

const [directory = '', what = ''] = process.argv.slice(2);
const { env, platform } = process;
const bubblewrap = await findBubblewrap({ env, platform, cacheDir: directory });
const names = Array.from({ length: 12 }, () => 'n'.repeat(250)).join('/');
const long = Array.from({ length: 40 }, (_, at) => ({
  source: directory,
  target: `/long/${at}/${names}`,
  readOnly: true,
}));
const isLong = what === 'long';
const asRoot = bubblewrap.setpriv !== undefined;
const { release } = startConfined(
  bubblewrap,
  {
    command: ['/bin/sh', '-c', 'while read -r line; do echo "$line"; done </proc/self/status'],
    env: {},
    mounts: isLong ? long : [],
    network: 'none',
    user: await confinedUser({ asRoot, name: 'starter', mounts: [] }),
  },
  {
    stdio: ['ignore', 1, 2],
    held: what === 'hold',
    within: (command) =>
      isLong
        ? ['/bin/sh', '-c', 'read -r _ <"$0"; exec "$@"', path.join(directory, 'gate'), ...command]
        : command,
  },
);
if (what === 'go') release();
// What can be written at once is written by then.
setImmediate(() => process.stdout.write('begun\n'));
setInterval(() => {}, 60_000);
