import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { RuntimeEnvironment } from '../environment.ts';
import type { PrepareRequest } from '../runtime.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { Bubblewrap } from './confine.ts';
import type { FindPackage } from './found-package.ts';
import { hasTree } from './package-trees.ts';
import { packagesDirectory } from './places.ts';
import { moveIntoPlace, removeFiles, scratchDirectory } from './own-directories.ts';

/** A row for each kind of package, loaded when one is fetched. */
const FINDERS: Readonly<Record<PackageSource['ecosystem'], () => Promise<FindPackage>>> = {
  npm: async () => (await import('./npm-package.ts')).findNpmPackage,
  pypi: async () => (await import('./pypi-package.ts')).findPypiPackage,
  go: async () => (await import('./go-package.ts')).findGoPackage,
};

/**
 * Fetches a package with everything it needs into the package cache and returns the id of the tree. Whatever fetches it
 * runs confined. The tree appears under its name only when it is complete; a failure or an abort leaves nothing. Throws
 * `runtime/package-not-found`, `runtime/prefetch-failed`, `runtime/aborted`, or what says which program is missing.
 */
export async function prefetch(
  environment: RuntimeEnvironment,
  bubblewrap: Bubblewrap,
  source: PackageSource,
  request: PrepareRequest,
): Promise<string> {
  const { report, signal } = request;
  const packages = packagesDirectory(environment);
  const find = await FINDERS[source.ecosystem]();
  using found = await find({ environment, source, request });
  const { reference, specifier } = found;
  if (await hasTree(environment, reference)) return reference;
  report.step(`Fetching ${specifier}`);
  const stage = await scratchDirectory(packages, environment);
  try {
    const tree = path.join(stage, 'tree');
    await mkdir(tree);
    await found.fetch({ bubblewrap, stage, report, signal });
    await moveIntoPlace(tree, path.join(packages, reference), environment);
    return reference;
  } finally {
    await removeFiles(stage);
  }
}
