import type { Places } from '@skep/core/files/places.ts';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { findRunConfig, loadRunConfig, saveRunConfig, savedNames } from '../run-config/file.ts';
import { lockName, type LockWait } from './name-lock.ts';

/** Names of the workloads in a group, stopped ones too, sorted. Damaged ones are in none. */
export async function membersOf(places: Places, group: string): Promise<readonly string[]> {
  return (await groupsOfAll(places)).flatMap(([name, its]) => (its === group ? [name] : []));
}

/** The group of every workload that says one. */
export async function groupsOfAll(
  places: Places,
): Promise<readonly (readonly [name: string, group: string])[]> {
  const names = await savedNames(places);
  const configs = await Promise.all(names.map((name) => findRunConfig(places, name)));
  return configs.flatMap((config) => (config ? [[config.name, config.group] as const] : []));
}

/** Longer than anything but a build has a name. */
const WAIT_MS = 10_000;

/** Writes into a workload's configuration that it is in another group; one that was removed meanwhile is in none. */
export async function moveToGroup(name: string, group: string, wait: LockWait): Promise<void> {
  const { places } = wait;
  using _own = await lockName(name, { ...wait, waitMs: WAIT_MS });
  try {
    await saveRunConfig(places, { ...(await loadRunConfig(places, name)), group });
  } catch (error) {
    if (!hasCode(error, 'workload/not-found')) throw error;
  }
}
