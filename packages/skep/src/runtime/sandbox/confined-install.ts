import { chown, mkdir, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { sizeText } from '../../permissions/limits.ts';
import type { Mount } from '../../permissions/mounts.ts';
import { whyNotWritten } from '@skep/core/files/write-failure.ts';
import type { SkepError } from '@skep/core/errors/skep-error.ts';
import { notFetched } from '../gateway/failure.ts';
import type { PackageGateway } from '../gateway/gateway.ts';
import type { Bubblewrap, ConfinedProgram } from './confine.ts';
import { confinedUser } from '../../permissions/confined-user.ts';
import { runToItsEnd, type ProgramEnd } from './run-to-end.ts';
import { MAX_FETCH_KIB, watchSize } from './size-watch.ts';

/** Where a confined package manager finds what it is given. */
export const INSIDE = { bridge: '/skep/bridge.cjs', socket: '/skep/registry', cache: '/stage/cache' };

export interface ConfinedInstall {
  readonly bubblewrap: Bubblewrap;
  /** What it can reach; ended with the install. */
  readonly gateway: PackageGateway;
  /** A directory of this install alone; `tree` in it is where the package goes. */
  readonly stage: string;
  /** The package as it was asked for, for messages. */
  readonly specifier: string;
  /** Whose name decides which user it runs as. */
  readonly manager: string;
  /** The script at INSIDE.bridge. */
  readonly bridge: string;
  /** Directories and files of `stage` that it may write, beside its cache. */
  readonly writable: readonly string[];
  /** What it is called with; the bridge, the socket and the cache are mounted beside. */
  readonly program: Pick<ConfinedProgram, 'command' | 'env' | 'mounts' | 'cwd'>;
  /** Told each line of what is kept. */
  readonly onLine?: (line: string) => void;
  /** Keep what it writes to standard output, too. */
  readonly stdout?: 'pipe';
  readonly signal: AbortSignal;
}

/**
 * Runs a package manager in a sandbox of its own: whatever it, or a package that it prepares, can be bent to do happens
 * where there is no file of the user, no login and no network but the gateway. Any exit status is a result. Throws
 * `runtime/prefetch-failed` when the package is too large or fetching it takes too much memory, or `runtime/aborted`.
 */
export async function installConfined(install: ConfinedInstall): Promise<ProgramEnd> {
  const { bubblewrap, gateway, stage, program, signal, specifier } = install;
  const at = (name: string) => path.join(stage, name);
  const asRoot = bubblewrap.setpriv !== undefined;
  const user = await confinedUser({ asRoot, name: install.manager, mounts: [] });
  await mkdir(at('cache'));
  await writeFile(at('bridge.cjs'), install.bridge, { mode: 0o644 });
  await gateway.listen(at('registry'));
  const given = [...install.writable, 'cache', 'registry'];
  if (asRoot) await Promise.all(given.map((name) => chown(at(name), user.uid, user.gid)));
  await using size = watchSize(stage, MAX_FETCH_KIB);
  const confined = {
    ...program,
    mounts: [...program.mounts, ...ownMounts(stage)],
    network: 'none',
    user,
    // Some leave files out that they cannot make as they were packed; `checkFiles` takes the bits away.
    setIdFiles: true,
    endsWithParent: true,
  } as const;
  try {
    const both = AbortSignal.any([signal, size.tooLarge]);
    const end = await runToItsEnd(bubblewrap, confined, both, install);
    if (end.exceeded === undefined && (end.status === 0 || !(await isDiskFull(end.said, stage)))) return end;
    if (end.exceeded === undefined) throw diskFull(specifier, stage);
    throw notFetched(specifier, `what fetches it used more than ${sizeText(end.exceeded)} of memory`);
  } catch (error) {
    if (size.tooLarge.aborted && !signal.aborted) throw notFetched(specifier, 'it is larger than 4 GiB');
    throw error;
  }
}

/** As package managers, compilers and the kernel say it. */
const FULL = /\bENOSPC\b|no space left on device/i;
const NO_QUOTA = /\bEDQUOT\b|disk quota exceeded/i;
/** What may be free by the time we look: a program that fails may remove what it had begun. */
const NEARLY_FULL_BYTES = 64 * 1024 ** 2;

/** True where a program says that its disk is full, and it is; a quota is not to be seen from here. */
export async function isDiskFull(said: string, directory: string): Promise<boolean> {
  if (NO_QUOTA.test(said)) return true;
  if (!FULL.test(said)) return false;
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize < NEARLY_FULL_BYTES;
}

function diskFull(specifier: string, stage: string): SkepError {
  const { reason, ...next } = whyNotWritten(stage, 'ENOSPC');
  return notFetched(specifier, reason, next);
}

function ownMounts(stage: string): readonly Mount[] {
  return [
    { source: path.join(stage, 'bridge.cjs'), target: INSIDE.bridge, readOnly: true },
    { source: path.join(stage, 'registry'), target: INSIDE.socket, readOnly: true },
    { source: path.join(stage, 'cache'), target: INSIDE.cache, readOnly: false },
  ];
}
