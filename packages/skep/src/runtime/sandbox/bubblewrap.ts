import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';

const run = promisify(execFile);

export interface Bubblewrap {
  /** Absolute path. */
  readonly program: string;
  readonly version: string;
  /** This release can forbid further user namespaces inside (0.8 and later). */
  readonly locksUserns: boolean;
}

export interface BubblewrapSearch {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
}

/** Finds bubblewrap and proves that it can make namespaces here. Throws `runtime/sandbox-unavailable`. */
export async function findBubblewrap({ env, platform }: BubblewrapSearch): Promise<Bubblewrap> {
  if (platform !== 'linux') {
    throw unavailable(`the sandbox is not available on "${platform}" yet`, 'start a container engine');
  }
  const directories = [
    ...(env['PATH'] ?? '').split(':').filter((one) => path.isAbsolute(one)),
    '/usr/bin',
    '/usr/local/bin',
  ];
  for (const directory of directories) {
    const program = path.join(directory, 'bwrap');
    if (await isExecutable(program)) return prove(program);
  }
  throw unavailable('bubblewrap (bwrap) is not installed', INSTALL_HINT);
}

/** Mounts the whole system read-only, only to see namespaces work; nothing but `true` runs in it. */
const PROOF = ['--unshare-user', '--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts'];

async function prove(program: string): Promise<Bubblewrap> {
  try {
    const { stdout } = await run(program, ['--version']);
    const version = /\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? '0';
    await run(program, [...PROOF, '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--', 'true'], {
      timeout: 5000,
    });
    const [major = 0, minor = 0] = version.split('.').map(Number);
    return { program, version, locksUserns: major > 0 || minor >= 8 };
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw unavailable(
      `bubblewrap at "${program}" cannot make a sandbox${said === '' ? '' : `: ${said}`}`,
      USERNS_HINT,
    );
  }
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

const INSTALL_HINT =
  'install it, for example with: apt-get install bubblewrap (Debian, Ubuntu) or dnf install bubblewrap (Fedora)';
const USERNS_HINT =
  'allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or the AppArmor profile of bwrap)';

function unavailable(message: string, hint: string): SkepError {
  return new SkepError('runtime/sandbox-unavailable', { message, hint });
}
