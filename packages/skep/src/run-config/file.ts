import { readdirSync } from 'node:fs';
import { sep } from 'node:path';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { readJsonAtOnce } from '@skep/core/files/read-at-once.ts';
import type { Places } from '@skep/core/files/places.ts';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { checkWorkloadName, isWorkloadName } from '../settings/workload-name.ts';
import type { RunConfig } from './run-config.ts';
import { summaryOf, type RunSummary } from './summary.ts';

export const MAX_RUN_CONFIG_BYTES = 4 * 1024 * 1024;
const LIMITS = { maxBytes: MAX_RUN_CONFIG_BYTES, what: 'run configuration' };

/** Put together by hand: of a hundred workloads, `join` would take as long as reading their files. */
const pathOf = (places: Places, name: string): string =>
  `${places.runConfigsDir}${sep}${checkWorkloadName(name)}.json`;

/** Writes the saved run config of a workload, atomically, readable by its user only. */
export async function saveRunConfig(places: Places, config: RunConfig): Promise<void> {
  const { encodeRunConfig } = await import('./run-config.ts');
  await atomicWrite(pathOf(places, config.name), encodeRunConfig(config), { mode: 0o600 });
}

/** Fails with `workload/not-found`, or with `workload/state-unreadable` when it is damaged. */
export async function loadRunConfig(places: Places, name: string): Promise<RunConfig> {
  const path = pathOf(places, name);
  try {
    const { decodeRunConfig } = await import('./run-config.ts');
    const { value, text } = readJsonAtOnce(path, LIMITS);
    return decodeRunConfig(value, path, text);
  } catch (error) {
    if (hasCode(error, 'file/not-found')) {
      throw new SkepError('workload/not-found', { message: `workload "${name}" not found`, cause: error });
    }
    if (!(error instanceof SkepError)) throw error;
    throw new SkepError('workload/state-unreadable', {
      message: error.message,
      hint: damagedHint(name),
      cause: error,
    });
  }
}

/** As `summaryOf`; undefined also where there is none, or nobody can read it. */
export function findSummary(places: Places, name: string): RunSummary | undefined {
  try {
    return summaryOf(readJsonAtOnce(pathOf(places, name), LIMITS).value, name);
  } catch (error) {
    if (error instanceof SkepError) return undefined;
    throw error;
  }
}

/** As `loadRunConfig`; undefined where there is none, or a damaged one. */
export async function findRunConfig(places: Places, name: string): Promise<RunConfig | undefined> {
  return loadRunConfig(places, name).catch((error: unknown) => {
    if (error instanceof SkepError) return undefined;
    throw error;
  });
}

/** How to go on when a file of a workload is damaged. */
export const damagedHint = (name: string): string =>
  `remove the workload with skep rm ${name}, then run it again`;

export async function deleteRunConfig(places: Places, name: string): Promise<void> {
  await removeFile(pathOf(places, name));
}

/** Names of all workloads with a saved run config, sorted. */
export async function savedNames(places: Places): Promise<readonly string[]> {
  return namesIn(places.runConfigsDir, '.json');
}

/** Ports that saved workloads will want again when they are started, with their names. */
export async function promisedPorts(places: Places): Promise<ReadonlyMap<number, string>> {
  const ports = new Map<number, string>();
  for (const name of await savedNames(places)) {
    const config = await findRunConfig(places, name);
    if (config) ports.set(config.port, config.name);
  }
  return ports;
}

/** Workload names of the files `<name><suffix>` in a directory, sorted; a missing directory is empty. */
export function namesIn(directory: string, suffix: string): readonly string[] {
  let files;
  try {
    // Asynchronous, it would start Node's threads, which costs `skep list` 3 ms. The directory is small.
    files = readdirSync(directory);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw new SkepError('workload/state-unreadable', { message: `cannot read "${directory}"`, cause: error });
  }
  return files
    .filter((file) => file.endsWith(suffix))
    .map((file) => file.slice(0, -suffix.length))
    .filter(isWorkloadName)
    .toSorted();
}
