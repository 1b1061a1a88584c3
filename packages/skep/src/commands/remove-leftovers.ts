import { rm } from 'node:fs/promises';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { removeEmpty, removeUnfinished } from '@skep/core/files/atomic-write.ts';
import { removeUnusedLocks } from '@skep/core/files/lock.ts';
import type { Context } from '../cli/context.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { openRuntimes } from '../cli/open-runtime.ts';
import { forgetPorts } from '../run-config/kept-ports.ts';
import type { Removal } from '../supervisor/remove-workload.ts';
import { isOwn, ownerOf } from '../supervisor/owner.ts';
import { knownNames, whileNothingIsMade } from '../workloads/name-lock.ts';

/**
 * After the last workload is gone: ends the supervisor and removes what workloads have in common, so that only the
 * configuration stays, and without `data` what is kept for runs of the same names. What another command is making
 * meanwhile is left alone, with all of that.
 */
export async function removeLeftovers(context: Context, { data }: Removal): Promise<void> {
  const { places, terminal } = context;
  const cleared = await whileNothingIsMade(context, async () => {
    const names = await knownNames(places);
    await removeForgotten(context, names);
    if (names.length > 0) return;
    await removeShared(context);
    if (data === true) await forgetPorts(places);
  });
  if (!cleared) return terminal.err('Another command is starting a server, which was left alone\n');
  for (const locks of [places.locksDir, places.secretLocksDir]) await removeUnusedLocks(locks);
  // What else lies there (the sandbox's folder, groups) is only removed when it is empty.
  for (const folder of [
    `${places.dataDir}/sandbox`,
    `${places.dataDir}/volumes`,
    places.keptDir,
    places.secretLocksDir,
    places.dataDir,
    places.groupsDir,
    places.stateDir,
  ])
    await removeEmpty(folder);
}

async function removeShared(context: Context): Promise<void> {
  const { places, signal } = context;
  await new SupervisorClient(context).rest({ signal });
  const ofWorkloads = [places.runConfigsDir, places.previousDir, places.statusesDir, places.serversDir];
  const ready = `${places.dataDir}/ready`;
  for (const folder of [...ofWorkloads, places.logsDir, places.supervisorDir, places.cacheDir, ready]) {
    await rm(folder, { recursive: true, force: true });
  }
  // What was killed while it wrote has left a part.
  for (const folder of [places.keptDir, places.stateDir]) await removeUnfinished(folder);
}

/** What is ours without saved state: from interrupted runs, or because that was removed by hand. */
async function removeForgotten(context: Context, names: readonly string[]): Promise<void> {
  const owner = ownerOf(context.places.stateDir);
  try {
    for (const runtime of await openRuntimes(context)) {
      for (const seen of await runtime.list()) {
        if (!isOwn(seen, owner) || names.includes(seen.name)) continue;
        await runtime.stop(seen.name, 0);
        await runtime.remove(seen.name);
      }
      if (names.length === 0) await runtime.sweep();
    }
  } catch (error) {
    // Without a runtime there is nothing of ours running on it.
    if (!hasCode(error, 'runtime/unavailable') && !hasCode(error, 'runtime/sandbox-unavailable')) throw error;
  }
}
