import { unhosted } from '../supervisor/state.ts';
import type { Context } from './context.ts';

/**
 * Brings proxies back after a crash: starts the supervisor when something should be hosted and no living process does.
 * Commands that show or change workloads call it first, so that what they show is true.
 */
export async function ensureHosted(context: Context): Promise<void> {
  const { places, isAlive } = context;
  // A supervisor that has just come up says of what it takes up that it starts. A damaged file is told about by the
  // command that shows it.
  const left = await unhosted({ places, isAlive, alsoStarting: true }, () => {});
  if (left.length === 0) return;
  // Loaded when it is needed: looking at workloads is done often.
  const { SupervisorClient } = await import('../supervisor/client.ts');
  await new SupervisorClient(context).settle({ signal: context.signal });
}
