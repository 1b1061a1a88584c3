import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context } from '../cli/context.ts';
import { referencesOf } from '../run-config/header-forward.ts';
import { secretsFor } from '../plan/secrets-for.ts';
import type { Progress } from '../print/progress.ts';
import { saveRunConfig } from '../run-config/file.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { readAddress } from '../supervisor/address.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { hostOf, readStatus, shouldRun } from '../supervisor/state.ts';
import { surroundingsOf } from './carry-out.ts';
import { startEvents } from './tell-start.ts';

export interface Swap {
  readonly name: string;
  readonly context: Context;
  readonly progress: Progress;
  /** What a person is told where the earlier one had to be started again. */
  readonly failed: string;
  /** The same where somebody stopped it meanwhile, so that it was not. */
  readonly stopped: string;
}

/**
 * Makes a workload what `next` says and starts it where it ran; answers whether it runs. When it does not start, `current`
 * is back and running, and this fails with why. Where somebody stops it meanwhile it stays stopped, with `run/cancelled`.
 */
export async function swapConfig(next: RunConfig, current: RunConfig, swap: Swap): Promise<boolean> {
  const { name, context, progress, failed, stopped } = swap;
  const { places, signal, terminal } = context;
  const status = await readStatus(places, name);
  const wasRunning = status !== undefined && shouldRun(status.status);
  const client = new SupervisorClient(context);
  await refuseForeground(name, context);
  // Before anything ends: a supervisor may not know the password that this command was given.
  const secrets = await secretsFor(referencesOf(next), surroundingsOf(context));
  const before = await secretsFor(referencesOf(current), surroundingsOf(context)).catch(() => undefined);
  try {
    const tell = startEvents(progress, terminal);
    if (wasRunning) await client.start(name, { config: next, secrets, signal, tell });
    else await saveRunConfig(places, next);
    progress.end();
    return wasRunning;
  } catch (error) {
    progress.end();
    // The person may have pressed Ctrl-C, and what ran is to run again all the same.
    const { signal: through } = new AbortController();
    if (!wasRunning) {
      await saveRunConfig(places, current);
      throw error;
    }
    const back = client.start(name, { config: current, signal: through, ...(before && { secrets: before }) });
    const again: unknown = await back.then(
      () => undefined,
      (failure: unknown) => failure,
    );
    // What somebody stopped or removed meanwhile stays so.
    const isStopped = hasCode(again, 'run/cancelled');
    if (again !== undefined && !isStopped && !hasCode(again, 'workload/not-found')) throw again;
    if (again === undefined || isStopped) terminal.err(`${isStopped ? stopped : failed}\n`);
    throw error;
  }
}

/** Fails with `usage/not-available` for a workload of another command, which removes it when it is ended. */
export async function refuseForeground(name: string, { places, uid, isAlive }: Context): Promise<void> {
  const status = await readStatus(places, name);
  const host = status && hostOf(status, isAlive);
  const supervisor = host && readAddress(places, uid);
  if (!host || (supervisor?.pid === host.pid && supervisor.started === host.started)) return;
  throw new SkepError('usage/not-available', {
    message: `${name} runs in the foreground of another command, process ${host.pid}`,
    hint: 'end that command, and run it as you want it',
  });
}
