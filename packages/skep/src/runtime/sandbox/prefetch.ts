import { execFile } from 'node:child_process';
import { mkdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { PrepareRequest } from '../runtime.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { Bubblewrap } from './confine.ts';
import type { FindPackage } from './found-package.ts';
import { findProgram } from './find-program.ts';
import { hasTree } from './package-trees.ts';
import { packagesDirectory } from './places.ts';
import { removeFiles, scratchDirectory } from './own-directories.ts';

const run = promisify(execFile);
/** A disk that is busy for longer is not waited for. */
const SYNC_MS = 30_000;

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

/** When another process was faster its tree is the same one. */
export async function moveIntoPlace(
  tree: string,
  target: string,
  { env }: Pick<RuntimeEnvironment, 'env'>,
): Promise<void> {
  // Else a machine that goes down now may come back with the name and half of the files. Not every system can do that.
  const sync = findProgram('sync', env);
  if (sync !== undefined) await run(sync, ['-f', tree], { env: {}, timeout: SYNC_MS }).catch(() => {});
  try {
    await rename(tree, target);
  } catch (cause) {
    const code = errnoOf(cause);
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return;
    throw new SkepError('runtime/prefetch-failed', {
      message: `cannot write "${target}": ${code ?? 'unexpected failure'}`,
      cause,
    });
  }
}
