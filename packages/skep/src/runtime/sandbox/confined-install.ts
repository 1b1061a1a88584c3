import { addAbortListener, once } from 'node:events';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Mount } from '../../permissions/mounts.ts';
import { notFetched } from '../gateway/failure.ts';
import type { PackageGateway } from '../gateway/gateway.ts';
import { startConfined, type Bubblewrap, type ConfinedProgram } from './confine.ts';
import { confinedUser } from '../../permissions/confined-user.ts';
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

export interface ProgramEnd {
  readonly status: number;
  /** The last of what was said. */
  readonly said: string;
}

/**
 * Runs a package manager in a sandbox of its own: whatever it, or a package that it prepares, can be bent to do happens
 * where there is no file of the user, no login and no network but the gateway. Any exit status is a result. Throws
 * `runtime/prefetch-failed` when the package is too large, or `runtime/aborted`.
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
    return await runToItsEnd(bubblewrap, confined, both, install);
  } catch (error) {
    if (size.tooLarge.aborted && !signal.aborted) throw notFetched(specifier, 'it is larger than 4 GiB');
    throw error;
  }
}

function ownMounts(stage: string): readonly Mount[] {
  return [
    { source: path.join(stage, 'bridge.cjs'), target: INSIDE.bridge, readOnly: true },
    { source: path.join(stage, 'registry'), target: INSIDE.socket, readOnly: true },
    { source: path.join(stage, 'cache'), target: INSIDE.cache, readOnly: false },
  ];
}

const KEPT_CHARACTERS = 64 * 1024;

/** Any exit status is a result, with the last of what was said. Throws `runtime/aborted`. */
export async function runToItsEnd(
  bubblewrap: Bubblewrap,
  program: ConfinedProgram,
  signal: AbortSignal,
  { stdout, onLine }: Pick<ConfinedInstall, 'stdout' | 'onLine'> = {},
): Promise<ProgramEnd> {
  if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
  const { child } = startConfined(bubblewrap, program, { stdio: ['ignore', stdout ?? 'ignore', 'pipe'] });
  let said = '';
  const keep = (stream: Readable | null): void => {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-KEPT_CHARACTERS);
      // A line in two pieces counts as none.
      if (onLine !== undefined) for (const line of text.split('\n')) onLine(line);
    });
  };
  keep(child.stdout);
  keep(child.stderr);
  using _ = addAbortListener(signal, () => void child.kill('SIGKILL'));
  // `once` rejects with an `error`.
  const [code] = (await once(child, 'close')) as [number | null];
  if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
  return { status: code ?? 1, said };
}
