import type { Log } from '@skep/core/log/log.ts';
import type { Places } from '@skep/core/files/places.ts';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Host } from './host.ts';
import { GRACE_MS } from './launch.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { tellNobody } from './protocol.ts';
import { isUnfinished, readStatus, readStatuses, shouldRun, unhosted, type WorkloadStatus } from './state.ts';

export interface ResumeDeps {
  readonly host: Host;
  readonly places: Places;
  readonly clock: Clock;
  readonly isAlive: (process: ProcessIdentity) => boolean;
  readonly signal: AbortSignal;
  readonly log: Log;
}

export interface Resume {
  /** Every workload was tried once. */
  readonly settled: Promise<void>;
  /** Every workload is hosted, or does not have to be any more. Neither promise rejects. */
  readonly complete: Promise<void>;
  /** Looks once more: a command that hosted a workload in the foreground may have been killed since. */
  readonly again: () => Promise<void>;
  /** Tries, until it is done, what an operation on that workload left unfinished. */
  readonly finish: (name: string) => void;
  /** Something is being finished so. */
  readonly isBusy: () => boolean;
  /** As `isBusy`; what somebody else has finished since, of which this hears at its next try, is none. */
  readonly hasLeft: () => Promise<boolean>;
}

const RETRY = { firstDelayMs: 1_000, longestDelayMs: 30_000 } as const;

/**
 * Takes up what an earlier supervisor left: hosts what should run (a container that still runs is not restarted) and
 * finishes interrupted stops and removals. What fails is tried again: an engine may come up after us.
 */
export async function resume(deps: ResumeDeps): Promise<Resume> {
  // One damaged file must not keep the others down; `list` and `status` tell the person.
  const tellDamaged = (workload: string, err: unknown): void =>
    deps.log.error({ err, workload }, 'a status file could not be read');
  const look = async (): Promise<readonly string[]> =>
    unhosted(await readStatuses(deps.places, tellDamaged), deps);
  const names = await look();
  const first = names.map((name) => attempt(name, deps));
  const settled = Promise.all(first).then(() => {});
  const complete = Promise.all(
    names.map(async (name, index) => {
      if ((await first[index]) !== true) await retry(name, deps);
    }),
  ).then(() => {});
  async function again(): Promise<void> {
    await settled;
    const left = await look();
    await Promise.all(left.map((name) => attempt(name, deps)));
  }
  const unfinished = new Set<string>();
  function finish(name: string): void {
    if (unfinished.has(name)) return;
    unfinished.add(name);
    void retry(name, deps).finally(() => unfinished.delete(name));
  }
  async function hasLeft(): Promise<boolean> {
    const left = await Promise.all([...unfinished].map((name) => leftOf(name, deps)));
    return left.some((word) => word !== undefined);
  }
  return { settled, complete, again, finish, isBusy: () => unfinished.size > 0, hasLeft };
}

/** What is begun with it, or was, and is to be finished; undefined for nothing. */
async function leftOf(
  name: string,
  { host, places }: Pick<ResumeDeps, 'host' | 'places'>,
): Promise<WorkloadStatus['status'] | undefined> {
  const was = host.endOf(name) ?? (await readStatus(places, name))?.status;
  return was !== undefined && isUnfinished(was) ? was : undefined;
}

/** True when nothing is left to do for it. */
async function attempt(name: string, deps: ResumeDeps): Promise<boolean> {
  const { host, signal, log } = deps;
  try {
    const was = await leftOf(name, deps);
    if (was === undefined) return true;
    if (shouldRun(was)) await host.start(name, { how: 'resume', tell: tellNobody, signal });
    else if (was === 'removing') await host.remove(name);
    else await host.stop(name, GRACE_MS);
    log.info({ workload: name, was }, 'taken up');
    return true;
  } catch (error) {
    log.warn({ err: error, workload: name }, 'could not be taken up');
    return signal.aborted || hasCode(error, 'workload/other-engine') || hasCode(error, 'workload/not-found');
  }
}

async function retry(name: string, deps: ResumeDeps): Promise<void> {
  for (let delay: number = RETRY.firstDelayMs; ; delay = Math.min(delay * 2, RETRY.longestDelayMs)) {
    try {
      await deps.clock.sleep(delay, deps.signal);
    } catch {
      // Aborted: the supervisor ends, and the next one resumes.
      return;
    }
    if (await attempt(name, deps)) return;
  }
}
