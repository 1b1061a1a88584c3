import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Places } from '@skep/core/files/places.ts';
import { deleteRunConfig, findRunConfig, savedNames } from '../run-config/file.ts';
import { keepPort } from '../run-config/kept-ports.ts';
import { deletePrevious, findPrevious } from '../run-config/previous.ts';
import type { RunConfig, RuntimeReference } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { deleteFound } from './found-server.ts';
import { GRACE_MS } from './launch.ts';
import { earlierLog } from '../runtime/sandbox/log-file.ts';
import { settlingVolumes } from '../runtime/settling-volumes.ts';
import { forgetKept, noteGoing, readKept, unsharedVolumes, type KeptAt } from './kept-data.ts';
import { deleteStatus } from './state.ts';
import { isOwn } from './owner.ts';

export interface RemoveDeps {
  readonly places: Places;
  /** Absent where it is missing or damaged. */
  readonly config: RunConfig | undefined;
  /** What it runs on. */
  readonly runtime: Runtime;
  /** What it ran on before, for the data that stays there. */
  readonly openRuntime: (reference: RuntimeReference | undefined) => Promise<Runtime>;
  readonly owner: string;
  /** Deletes the secrets that belong to this workload alone. */
  readonly forgetSecrets: (config: RunConfig) => Promise<void>;
}

/** The log file of a workload's proxy. */
export function workloadLogPath(places: Places, name: string): string {
  return join(places.logsDir, `${checkWorkloadName(name)}.log`);
}

export interface Removal {
  /** What the workload kept goes as well. */
  readonly data?: boolean | undefined;
}

/**
 * Removes the workload from the runtime, what was built for it, and its files, in this order: while the runtime cannot
 * be reached the files stay, so that nothing running is forgotten. Answers with where its data stays. Idempotent: what
 * an interrupted removal left is removed.
 */
export async function removeWorkload(
  name: string,
  deps: RemoveDeps,
  { data = false }: Removal = {},
): Promise<readonly string[]> {
  const { places, owner, config, runtime } = deps;
  const whose = await whoseIs(name, runtime, owner);
  if (whose === 'ours') await runtime.stop(name, GRACE_MS);
  if (whose === 'ours') await noteEmpty(name, deps);
  // Where nothing is seen, a removal that was cut short may have left parts of it.
  if (whose !== 'others') await runtime.remove(name);
  if (config?.image_is_ours && !(await isImageUsed(config.image, name, places))) {
    await runtime.discard(config.image);
  }
  // What was before its last upgrade may have secrets of its own.
  const previous = await findPrevious(places, name).catch(() => undefined);
  for (const one of [config, previous]) if (one) await deps.forgetSecrets(one);
  await removePrevious(previous, name, { runtime, places });
  await deleteFound(places, name);
  const log = workloadLogPath(places, name);
  for (const file of [log, earlierLog(log)]) await rm(file, { force: true });
  const stays = await settleData(name, data, deps);
  // By these a removal that is cut short is found, and done again with all that is known of it.
  await deleteRunConfig(places, name);
  await deleteStatus(places, name);
  // Writes, so it comes last: on a full disk what takes the room must be gone by then.
  if (data) await keepPort(places, name, undefined);
  return stays;
}

/** What it was before its last upgrade, with the image of that. */
async function removePrevious(
  previous: RunConfig | undefined,
  name: string,
  { runtime, places }: { readonly runtime: Runtime; readonly places: Places },
): Promise<void> {
  if (previous?.image_is_ours && !(await isImageUsed(previous.image, name, places))) {
    await runtime.discard(previous.image);
  }
  await deletePrevious(places, name);
}

/** Once its container is gone, an engine cannot tell whether anything was in its volumes. On a full disk it is not noted. */
async function noteEmpty(name: string, deps: RemoveDeps): Promise<void> {
  const { places, owner, runtime } = deps;
  const mine = (await readKept(places, name)).find((one) => isCurrent(one, deps));
  if (mine === undefined || (await runtime.holdsData(name, owner, mine.volumes))) return;
  await noteGoing(places, name, (one) => isCurrent(one, deps)).catch(() => {});
}

/** True for what lies on the runtime that the workload is on. */
function isCurrent({ runtime }: KeptAt, { config }: Pick<RemoveDeps, 'config'>): boolean {
  return runtime === undefined || runtime.id === config?.runtime?.id;
}

/** Removes the data where that was asked for, or nothing is in it; answers with where data stays. */
async function settleData(name: string, asked: boolean, deps: RemoveDeps): Promise<readonly string[]> {
  const { places, owner, runtime: current } = deps;
  const stays: string[] = [];
  for (const one of await readKept(places, name)) {
    const { runtime: reference, where, volumes = [] } = one;
    const isHere = isCurrent(one, deps);
    const data = asked || one.goes === true;
    if (!data && (!isHere || (await current.holdsData(name, owner, volumes)))) {
      stays.push(...where);
      continue;
    }
    await settlingVolumes(places, volumes.length > 0, async () => {
      if (data) {
        const runtime = isHere ? current : await deps.openRuntime(reference);
        await runtime.removeData(name, owner, await unsharedVolumes(places, name, one));
      }
      await forgetKept(places, name, reference);
    });
  }
  return stays;
}

/** Only a runtime that keeps its own files can find them damaged, and those are this user's. */
async function whoseIs(name: string, runtime: Runtime, owner: string): Promise<'ours' | 'others' | 'gone'> {
  try {
    const seen = await runtime.inspect(name);
    if (seen === undefined) return 'gone';
    return isOwn(seen, owner) ? 'ours' : 'others';
  } catch (error) {
    if (hasCode(error, 'workload/state-unreadable')) return 'ours';
    throw error;
  }
}

/**
 * True when a saved workload other than `except` runs from this image or package tree, or did before its last upgrade, which
 * goes back to it where the new version does not start.
 */
export async function isImageUsed(image: string, except: string, places: Places): Promise<boolean> {
  // One after the other: one that could not be opened for want of descriptors would count as no user of it.
  for (const name of await savedNames(places)) {
    if (name === except) continue;
    if ((await findRunConfig(places, name))?.image === image) return true;
    if ((await findPrevious(places, name).catch(() => undefined))?.image === image) return true;
  }
  return false;
}
