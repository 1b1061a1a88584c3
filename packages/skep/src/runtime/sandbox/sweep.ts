import type { RuntimeEnvironment } from '../environment.ts';
import { sweepDirectory } from './own-directories.ts';
import { removeTree } from './package-trees.ts';
import { goLibrariesDirectory, packagesDirectory, workloadsDirectory } from './places.ts';
import { dropReady, sweepReady } from './ready-directory.ts';

/** Removes a package that no workload uses, with what is ready for its next one. */
export async function removePackage(environment: RuntimeEnvironment, reference: string): Promise<void> {
  await removeTree(environment, reference);
  await dropReady(environment, reference);
}

/** Removes all that is below directories of ours and whose name is not in `used`. */
export async function sweepUnused(environment: RuntimeEnvironment, used: ReadonlySet<string>): Promise<void> {
  await sweepDirectory(workloadsDirectory(environment), used);
  await sweepDirectory(packagesDirectory(environment), used);
  await sweepReady(environment, used);
  await sweepDirectory(goLibrariesDirectory(environment), used);
}
