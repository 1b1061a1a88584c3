import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { workloadPlaces, workloadsDirectory } from './places.ts';
import { readSpec } from './records.ts';

/** The volumes that a workload shares; none where its description is gone or damaged. */
async function volumesOf(environment: RuntimeEnvironment, name: string): Promise<readonly string[]> {
  try {
    const saved = await readSpec(workloadPlaces(path.join(workloadsDirectory(environment), name)).spec);
    return (saved?.spec.volumes ?? []).map(({ volume }) => volume);
  } catch (error) {
    if (hasCode(error, 'workload/state-unreadable')) return [];
    throw error;
  }
}

/** Those that a workload shares and no other has. */
export async function volumesOfOne(
  environment: RuntimeEnvironment,
  name: string,
): Promise<readonly string[]> {
  const own = await volumesOf(environment, name);
  if (own.length === 0) return [];
  const names = (await ifThere(readdir(workloadsDirectory(environment)))) ?? [];
  const others = names.filter((other) => other !== name);
  const used = await Promise.all(others.map((other) => volumesOf(environment, other)));
  return own.filter((one) => !used.flat().includes(one));
}
