import { join } from 'node:path';
import { atomicWrite, removeEmpty, removeFile } from '@skep/core/files/atomic-write.ts';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { readJsonText } from '@skep/core/files/read-limited.ts';
import type { Places } from '@skep/core/files/places.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { MAX_RUN_CONFIG_BYTES } from './file.ts';
import { decodeRunConfig, encodeRunConfig, type RunConfig } from './run-config.ts';

// What a workload was before its last upgrade: one step, so that it can be undone.

const pathOf = (places: Places, name: string): string =>
  join(places.previousDir, `${checkWorkloadName(name)}.json`);

export async function savePrevious(places: Places, config: RunConfig): Promise<void> {
  await atomicWrite(pathOf(places, config.name), encodeRunConfig(config), { mode: 0o600 });
}

/** Undefined where the workload was never upgraded. Fails as `decodeRunConfig` does for a damaged file. */
export async function findPrevious(places: Places, name: string): Promise<RunConfig | undefined> {
  const path = pathOf(places, name);
  try {
    const what = { maxBytes: MAX_RUN_CONFIG_BYTES, what: 'run configuration' };
    const { value, text } = await readJsonText(path, what);
    return decodeRunConfig(value, path, text);
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return undefined;
    throw error;
  }
}

export async function deletePrevious(places: Places, name: string): Promise<void> {
  await removeFile(pathOf(places, name));
  await removeEmpty(places.previousDir);
}
