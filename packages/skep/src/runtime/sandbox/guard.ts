import { appendFile, statfs } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { exceededText, type Limits } from '../../permissions/limits.ts';
import type { NamedVolume } from '../../permissions/mounts.ts';
import { userFile } from '../user-file.ts';
import { hasUsedUpMemory, type ControlGroup } from './control-groups.ts';
import { isRunning, sendSignal, type ProcessIdentity } from './linux-process.ts';
import type { WorkloadPlaces } from './places.ts';
import type { RunState } from './records.ts';
import { bytesBelow, removedBytes, usageOf } from './usage.ts';

/** Between two looks: while less than half of a limit is used, and beyond that. Milliseconds. */
const FAR_MS = 1_000;
const NEAR_MS = 100;
/** What lies on disk is counted again when so many bytes less are free there, or after so long. */
const DISK_STEP_BYTES = 32 * 1024 ** 2;
const DISK_MS = 60_000;
/** Counting may take no more than one part in so many of the time, unless all that it may keep was written since. */
const DISK_SHARE = 20;
/** A look goes on without waiting for others; so many times as long as it took are theirs. */
const LOOK_SHARE = 4;

export interface Guarded {
  readonly places: WorkloadPlaces;
  readonly limits: Limits;
  /** The first process inside. */
  readonly init: ProcessIdentity;
  /** The control group that holds its memory and its processes, where there is one. */
  readonly group?: ControlGroup;
  /** Directories in which it keeps things. */
  readonly keeps: readonly string[];
  /** The volumes among them that it shares. */
  readonly volumes?: readonly NamedVolume[] | undefined;
}

/** Guards a running workload while something waits for its end. */
export async function guarded(what: Guarded, signal: AbortSignal, ended: () => Promise<void>): Promise<void> {
  const over = new AbortController();
  const guarding = guard(what, AbortSignal.any([over.signal, signal]));
  try {
    await ended();
  } finally {
    over.abort();
    await guarding;
  }
}

/**
 * Ends a running workload that uses more than its limits, as far as the kernel does not hold them, and writes down which.
 * Resolves when the workload has ended or the signal aborts. Several may guard one workload.
 */
async function guard(what: Guarded, signal: AbortSignal): Promise<void> {
  const { init } = what;
  const disk = diskWatch(what);
  while (!signal.aborted && (await isRunning(init))) {
    const began = performance.now();
    const used = usedShare(what);
    const theirsMs = (performance.now() - began) * LOOK_SHARE;
    const over = used.over ?? (await disk());
    if (over !== undefined) {
      await noteExceeded(what, over);
      if (await isRunning(init)) sendSignal(init.pid, 'SIGKILL');
      return;
    }
    await pause(Math.max(theirsMs, used.share > 0.5 ? NEAR_MS : FAR_MS), undefined, { signal }).catch(() => {
      // The loop asks the signal.
    });
  }
}

interface Used {
  /** Of the limit that it is nearest to. */
  readonly share: number;
  readonly over?: 'memory' | 'pids';
}

function usedShare({ group, init, limits }: Guarded): Used {
  if (group !== undefined) return { share: 0 };
  const memory = limits.memory || Infinity;
  const pids = limits.pids || Infinity;
  const usage = usageOf(init.pid, memory);
  if (usage === undefined) return { share: 0 };
  if (usage.memory > memory) return { share: 1, over: 'memory' };
  if (usage.pids > pids) return { share: 1, over: 'pids' };
  return { share: Math.max(usage.memory / memory, usage.pids / pids) };
}

/** Answers with `disk` when more is kept than allowed; counts only when something may have been written. */
function diskWatch({ limits, keeps, init }: Guarded): () => Promise<'disk' | undefined> {
  if (limits.disk === 0) return () => Promise.resolve(undefined);
  let counted: { readonly free: number; readonly at: number; readonly tookMs: number } | undefined;
  return async () => {
    const [free, now] = [await freeAt(keeps[0] ?? '/'), performance.now()];
    if (counted !== undefined) {
      const since = now - counted.at;
      const written = counted.free - free;
      const wanted = written >= DISK_STEP_BYTES || since >= DISK_MS;
      const isRest = since < counted.tookMs * DISK_SHARE && written < limits.disk;
      if (!wanted || isRest) return undefined;
    }
    const bytes = (await bytesBelow(keeps)) + removedBytes(init.pid, keeps);
    counted = { free, at: performance.now(), tookMs: performance.now() - now };
    return bytes > limits.disk ? 'disk' : undefined;
  };
}

async function freeAt(directory: string): Promise<number> {
  const { bavail, bsize } = (await ifThere(statfs(directory))) ?? { bavail: 0, bsize: 0 };
  return bavail * bsize;
}

/** Where that cannot be written, the disk being full, it is ended all the same. */
async function noteExceeded({ places, limits, volumes }: Guarded, which: keyof Limits): Promise<void> {
  await atomicWrite(places.exceeded, which, { durable: false }).catch(() => {});
  await appendFile(places.log, `skep: ${exceededText(which, limits, volumes)}\n`).catch(() => {});
}

/** Which limit a workload was ended for, by the guard or by the kernel. */
export async function exceededBy(run: RunState, places: WorkloadPlaces): Promise<keyof Limits | undefined> {
  if (run.state !== 'exited' || run.exitCode === 0) return undefined;
  const text = await userFile(places.exceeded);
  const noted = (['memory', 'pids', 'disk'] as const).find((which) => which === text);
  return noted ?? (run.group && (await hasUsedUpMemory(run.group)) ? 'memory' : undefined);
}
