import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { settlingVolumes } from '../settling-volumes.ts';
import { workloadPlaces, workloadsDirectory } from './places.ts';
import { readSpec } from './records.ts';

/** The volumes that a workload shares; none where its description is gone, undefined where it is damaged. */
async function volumesOf(
  environment: RuntimeEnvironment,
  name: string,
): Promise<readonly string[] | undefined> {
  try {
    const saved = await readSpec(workloadPlaces(path.join(workloadsDirectory(environment), name)).spec);
    return (saved?.spec.volumes ?? []).map(({ volume }) => volume);
  } catch (error) {
    if (hasCode(error, 'workload/state-unreadable')) return undefined;
    throw error;
  }
}

/**
 * Hands those that a workload shares and no other has to `use`, while no start makes any. One whose description is damaged
 * may have each of them.
 */
export async function withVolumesOfOne(
  environment: RuntimeEnvironment,
  name: string,
  use: (volumes: readonly string[]) => Promise<void>,
): Promise<void> {
  const own = (await volumesOf(environment, name)) ?? [];
  await settlingVolumes(environment, own.length > 0, async () => {
    if (own.length === 0) return use(own);
    const names = (await ifThere(readdir(workloadsDirectory(environment)))) ?? [];
    const others = names.filter((other) => other !== name);
    const used = await Promise.all(others.map((other) => volumesOf(environment, other)));
    await use(own.filter((one) => used.every((theirs) => theirs?.includes(one) === false)));
  });
}
