import { remembering } from '../supervisor/process-identity.ts';
import { readStatuses, unhosted, type Statuses } from '../supervisor/state.ts';
import type { Context } from './context.ts';

/**
 * Brings proxies back after a crash: starts the supervisor when something should be hosted and no living process does.
 * Commands that show or change workloads call it first, so that what they show is true. Answers with the statuses that
 * it read, where they are true now.
 */
export async function ensureHosted(context: Context): Promise<Statuses | undefined> {
  // A supervisor that has just come up says of what it takes up that it starts, or of what it finishes that it ends. A damaged file is told about by the
  // command that shows it.
  const statuses = await readStatuses(context.places, () => {});
  const left = unhosted(statuses, { isAlive: remembering(context.isAlive), alsoUnderWay: true });
  if (left.length === 0) return statuses;
  // Loaded when it is needed: looking at workloads is done often.
  const { SupervisorClient } = await import('../supervisor/client.ts');
  await new SupervisorClient(context).settle({ signal: context.signal });
  return undefined;
}
