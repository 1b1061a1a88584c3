import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { workloadPlaces, workloadsDirectory } from './places.ts';
import { readSpec } from './records.ts';

/** The volumes that a workload shares; none where its description is gone or damaged. */
export async function volumesOf(environment: RuntimeEnvironment, name: string): Promise<readonly string[]> {
  try {
    const saved = await readSpec(workloadPlaces(path.join(workloadsDirectory(environment), name)).spec);
    return (saved?.spec.volumes ?? []).map(({ volume }) => volume);
  } catch (error) {
    if (hasCode(error, 'workload/state-unreadable')) return [];
    throw error;
  }
}

/** Those of the volumes that no workload has. */
export async function unusedVolumes(
  environment: RuntimeEnvironment,
  volumes: readonly string[],
): Promise<readonly string[]> {
  if (volumes.length === 0) return [];
  const names = (await ifThere(readdir(workloadsDirectory(environment)))) ?? [];
  const used = await Promise.all(names.map((name) => volumesOf(environment, name)));
  return volumes.filter((one) => !used.flat().includes(one));
}
