import { isUnfinished, readStatus, statusNames } from '../supervisor/state.ts';
import type { Context } from './context.ts';

/**
 * Brings proxies back after a crash: starts the supervisor when something should be hosted and no living process does.
 * Commands that show or change workloads call it first, so that what they show is true.
 */
export async function ensureHosted(context: Context): Promise<void> {
  const { places, isAlive, signal } = context;
  for (const name of await statusNames(places)) {
    // A damaged file is told about by the command that shows it.
    const status = await readStatus(places, name).catch(() => undefined);
    if (status === undefined || !isUnfinished(status.status)) continue;
    if (isAlive({ pid: status.process_id, started: status.process_started })) continue;
    // Loaded when it is needed: looking at workloads is done often.
    const { openClient } = await import('./open-client.ts');
    return openClient(context).settle({ signal });
  }
}
