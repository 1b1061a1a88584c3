import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Proxy } from '@skep/proxy/start.ts';
import { exceededText, limitsOf, type Limits } from '../permissions/limits.ts';
import { profileVolumes } from '../permissions/profile.ts';
import type { Mount } from '../permissions/mounts.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import { inspectOwn, launch } from './launch.ts';
import { whyStopped, type PolicyGate } from './policy.ts';
import type { StatusRecord } from './state.ts';

export interface WatchDeps {
  readonly runtime: Runtime;
  readonly status: StatusRecord;
  /** See `ownerOf`. */
  readonly owner: string;
  readonly clock: Clock;
  readonly random: (min: number, max: number) => number;
  /** See `LaunchOptions`. */
  readonly policy?: PolicyGate;
  /** The workload's secret variables, in memory only; asked for at each start. */
  readonly secrets: () => Promise<SecretEnv>;
  /** What is mounted over its mounts; asked for at each start. */
  readonly overlays: (config: RunConfig) => Promise<readonly Mount[]>;
  /** Called after each restart. */
  readonly restarted?: () => void;
  readonly log: Log;
}

interface Watched extends WatchDeps {
  readonly proxy: Proxy;
  /** Where the proxy forwards to, for HTTP servers; a restart binds it again. */
  readonly hostPort: number | undefined;
  /** Ends the watch; the workload is left as it is. */
  readonly signal: AbortSignal;
}

type End =
  | { readonly kind: 'exited'; readonly exitCode: number; readonly exceeded?: keyof Limits | undefined }
  /** The runtime could not be asked, or the workload is gone from it. */
  | { readonly kind: 'lost'; readonly error: unknown };

const RECONNECT = { firstDelayMs: 1_000, longestDelayMs: 30_000 } as const;

/**
 * Follows a running workload until the signal aborts or restarts are used up (docs/behaviour/run.md#restarts). Keeps
 * the status true, tells the proxy when the server behind it is a new one. Never rejects.
 */
export async function watch(config: RunConfig, watched: Watched): Promise<void> {
  try {
    await follow(config, { ...watched, status: whereThereIsRoom(watched) });
  } catch (error) {
    if (watched.signal.aborted) return;
    watched.log.error({ err: error }, 'watching the workload failed');
    const why = whyStopped(error);
    const told =
      why === undefined
        ? watched.status.set('error', 'its supervision failed; see skep logs --proxy')
        : watched.status.set('policy_stopped', why);
    await told.catch((cause: unknown) => {
      watched.log.error({ err: cause }, 'the status could not be written');
    });
  }
}

/** A disk that is full by now is no reason to leave a server to itself; what is written next is true again. */
function whereThereIsRoom({ status, log }: Watched): StatusRecord {
  return {
    async set(word, context) {
      try {
        await status.set(word, context);
      } catch (error) {
        if (!hasCode(error, 'file/write-failed')) throw error;
        log.warn({ err: error, status: word }, 'the status could not be written');
      }
    },
  };
}

async function follow(config: RunConfig, watched: Watched): Promise<void> {
  const { clock, signal, status, log } = watched;
  let attempts: number | undefined = 0;
  for (;;) {
    const since = clock.elapsed();
    const end = await untilEnd(config.name, watched);
    if (signal.aborted) return;
    log.warn(
      end.kind === 'exited' ? { exitCode: end.exitCode, exceeded: end.exceeded } : { err: end.error },
      'the workload ended or was lost',
    );
    if (end.kind === 'lost' && (await foundAgain(config, watched))) continue;
    tellEnded(watched);
    const what = endText(end, config);
    attempts = await restarted(config, watched, { what, attempts, ranMs: clock.elapsed() - since });
    if (attempts === undefined) {
      await status.set('error', `${what} and is not restarted any more; see skep logs ${config.name}`);
      return;
    }
  }
}

/** Whatever becomes of the calls that waited, the server is started again. */
function tellEnded({ proxy, log }: Watched): void {
  try {
    proxy.backendEnded();
  } catch (error) {
    log.error({ err: error }, 'the proxy could not let go of the server');
  }
}

async function untilEnd(name: string, { runtime, signal }: Watched): Promise<End> {
  try {
    const exitCode = await runtime.wait(name, signal);
    return { kind: 'exited', exitCode, exceeded: (await runtime.inspect(name))?.exceeded };
  } catch (error) {
    return { kind: 'lost', error };
  }
}

function endText(end: End, config: RunConfig): string {
  if (end.kind === 'lost') return 'the server is gone';
  return end.exceeded === undefined
    ? `the server ended with exit status ${end.exitCode}`
    : exceededText(end.exceeded, limitsOf(config), profileVolumes(config.permission_profile));
}

/** Waits until the runtime answers again. True when the workload still runs there and was taken up again. */
async function foundAgain(config: RunConfig, watched: Watched): Promise<boolean> {
  const { clock, signal, status, proxy } = watched;
  for (let delay: number = RECONNECT.firstDelayMs; ; delay = Math.min(delay * 2, RECONNECT.longestDelayMs)) {
    try {
      const seen = await inspectOwn(config.name, watched);
      if (seen?.state !== 'running') return false;
      proxy.backendStarted();
      await status.set('running');
      return true;
    } catch (error) {
      await status.set('unhealthy', `the ${watched.runtime.kind} runtime does not answer`);
      watched.log.warn({ err: error, delayMs: delay }, 'the runtime does not answer');
      await clock.sleep(delay, signal);
    }
  }
}

interface Ended {
  /** For the person who asks why it does not run. */
  readonly what: string;
  readonly attempts: number;
  readonly ranMs: number;
}

/** Starts the workload again; the attempts by then, undefined when they are used up. */
async function restarted(config: RunConfig, watched: Watched, ended: Ended): Promise<number | undefined> {
  const { clock, signal, status, log, proxy } = watched;
  let { attempts, ranMs } = ended;
  for (;;) {
    const plan = planRestart(attempts, ranMs);
    if (plan === undefined) return undefined;
    ({ attempts } = plan);
    await status.set('starting', `${ended.what}, restarting; see skep logs ${config.name}`);
    await clock.sleep(plan.delayMs, signal);
    try {
      await launch(config, watched);
      proxy.backendStarted();
      await status.set('running');
      watched.restarted?.();
      return attempts;
    } catch (error) {
      // Another try would be refused as well.
      if (whyStopped(error) !== undefined) throw error;
      log.warn({ err: error, attempt: attempts }, 'the workload could not be restarted');
      ranMs = 0;
    }
  }
}

/** When a workload that ended by itself is started again. Durations in milliseconds. */
export const RESTART = {
  maxAttempts: 10,
  firstDelayMs: 5_000,
  longestDelayMs: 60_000,
  /** A run this long counts as healthy: attempts and delay begin anew. */
  stableAfterMs: 30_000,
} as const;

/** The next attempt after `before` of them and a run of `ranMs`; undefined when they are used up. */
export function planRestart(
  before: number,
  ranMs: number,
): { readonly delayMs: number; readonly attempts: number } | undefined {
  const attempts = ranMs >= RESTART.stableAfterMs ? 0 : before;
  if (attempts >= RESTART.maxAttempts) return undefined;
  const delayMs = Math.min(RESTART.firstDelayMs * 2 ** attempts, RESTART.longestDelayMs);
  return { delayMs, attempts: attempts + 1 };
}
