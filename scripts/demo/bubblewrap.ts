import { spawnSync } from 'node:child_process';
import type { Screen } from './screen.ts';

/** How each distribution's package manager installs bubblewrap without asking. */
const INSTALLERS: readonly { readonly manager: string; readonly commands: readonly (readonly string[])[] }[] =
  [
    {
      manager: 'apt-get',
      commands: [
        ['apt-get', 'update', '-qq'],
        ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', 'bubblewrap'],
      ],
    },
    { manager: 'dnf', commands: [['dnf', 'install', '-y', '-q', 'bubblewrap']] },
    { manager: 'pacman', commands: [['pacman', '-S', '--noconfirm', 'bubblewrap']] },
    { manager: 'zypper', commands: [['zypper', '--non-interactive', 'install', 'bubblewrap']] },
    { manager: 'apk', commands: [['apk', 'add', '-q', 'bubblewrap']] },
  ];

/** True when a sandbox can be started now. */
function bubblewrapWorks(): boolean {
  return (
    spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true'], { stdio: 'ignore' }).status === 0
  );
}

/**
 * Makes bubblewrap available: installs it where this process may (root, or sudo without a password), else prints the
 * line to run. Returns whether a sandbox can be started afterwards.
 */
export function ensureBubblewrap(screen: Screen): boolean {
  if (bubblewrapWorks()) return true;
  const installer = INSTALLERS.find(({ manager }) => isOnPath(manager));
  if (!installer) {
    screen.note(
      'bubblewrap is missing and no known package manager is here; install it and run the demo again',
    );
    return false;
  }
  const prefix = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  const line = installer.commands.map((command) => command.join(' ')).join(' && ');
  if (prefix.length > 0 && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status !== 0) {
    screen.note('no container engine answers and bubblewrap is missing. Run this line, then the demo again:');
    screen.typed(installer.commands.map((command) => `sudo ${command.join(' ')}`).join(' && '));
    return false;
  }
  screen.note(`bubblewrap is missing; installing it: ${line}`);
  for (const [program = '', ...args] of installer.commands.map((command) => [...prefix, ...command])) {
    const ran = spawnSync(program, args, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    if (ran.status !== 0) {
      screen.note(
        `"${[program, ...args].join(' ')}" failed; install bubblewrap by hand and run the demo again`,
      );
      return false;
    }
  }
  if (bubblewrapWorks()) return true;
  screen.note('bubblewrap is installed but cannot start: this machine forbids user namespaces');
  return false;
}

function isOnPath(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
}
