import type { ChildProcess } from 'node:child_process';
import { addAbortListener, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import type { Readable } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { DEFAULT_LIMITS, type Limits } from '../../permissions/limits.ts';
import { startConfined, type Bubblewrap, type ConfinedProgram } from './confine.ts';
import { hasUsedUpMemory, inGroup, makeGroup, removeGroup } from './control-groups.ts';
import { MAX_FETCH_KIB } from './size-watch.ts';
import { usageOf } from './usage.ts';

export interface RunToItsEnd {
  /** A directory of this fetch alone. */
  readonly stage: string;
  /** Keep what it writes to standard output, too. */
  readonly stdout?: 'pipe';
  /** Told each line of what is kept. */
  readonly onLine?: (line: string) => void;
  /** Other than `fetchLimits`. */
  readonly limits?: Limits;
}

export interface ProgramEnd {
  readonly status: number;
  /** The last of what was said. */
  readonly said: string;
  /** It was ended because it used more than so many bytes of memory. */
  readonly exceeded?: number;
}

const KEPT_CHARACTERS = 64 * 1024;
const LOOK_MS = 500;

/**
 * What fetching a package may use of this machine: packages run code then, too. Half of its memory, and processes enough for a
 * compiler on each processor.
 */
export function fetchLimits(): Limits {
  return {
    memory: Math.max(DEFAULT_LIMITS.memory, Math.floor(totalmem() / 2)),
    pids: 512 + 128 * availableParallelism(),
    cpus: 0,
    disk: MAX_FETCH_KIB * 1024,
  };
}

/**
 * Runs a program of a fetch within its limits. Any exit status is a result, with the last of what was said. Throws
 * `runtime/aborted`.
 */
export async function runToItsEnd(
  bubblewrap: Bubblewrap,
  program: ConfinedProgram,
  signal: AbortSignal,
  { stage, stdout, onLine, limits = fetchLimits() }: RunToItsEnd,
): Promise<ProgramEnd> {
  if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
  const { groups } = bubblewrap;
  const group = groups && (await makeGroup(groups, { directory: stage }, limits));
  try {
    const bounded = { ...program, limits, inGroup: group !== undefined };
    const { child } = startConfined(bubblewrap, bounded, {
      stdio: ['ignore', stdout ?? 'ignore', 'pipe'],
      ...(group && { within: (command: readonly string[]) => inGroup(group, command) }),
    });
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
    using watch = group === undefined ? watchMemory(child, limits.memory) : undefined;
    // `once` rejects with an `error`.
    const [code] = (await once(child, 'close')) as [number | null];
    if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
    const status = code ?? 1;
    const isOver = watch?.isOver() ?? (status !== 0 && group !== undefined && (await hasUsedUpMemory(group)));
    return { status, said, ...(isOver && { exceeded: limits.memory }) };
  } finally {
    if (group !== undefined) await removeGroup(group);
  }
}

/** Ends bubblewrap, and with it everything inside, when that uses more memory together: no kernel holds the sum. */
function watchMemory(
  bubblewrap: ChildProcess,
  bytes: number,
): Disposable & { readonly isOver: () => boolean } {
  let over = false;
  const look = (): void => {
    const init = firstChild(bubblewrap.pid ?? 0);
    if (init === undefined || (usageOf(init, bytes)?.memory ?? 0) <= bytes) return;
    over = true;
    bubblewrap.kill('SIGKILL');
  };
  const looking = setInterval(look, LOOK_MS);
  return { isOver: () => over, [Symbol.dispose]: () => clearInterval(looking) };
}

function firstChild(pid: number): number | undefined {
  try {
    const [first = ''] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ');
    return first === '' ? undefined : Number(first);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}
