import { execFile } from 'node:child_process';
import { mkdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { findNpm } from '../npm/program.ts';
import { npmSpecifier } from '../npm/failure.ts';
import { Upstream } from '../npm/upstream.ts';
import type { PrepareRequest } from '../runtime.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { Bubblewrap } from './confine.ts';
import { checkTree } from './check-tree.ts';
import { compileAhead } from './compile-ahead.ts';
import { GATEWAY, npmInstall } from './npm-install.ts';
import { findProgram } from './find-program.ts';
import { hasTree, treeId, treeManifest } from './package-trees.ts';
import { packagesDirectory } from './places.ts';
import { scratchDirectory } from './own-directories.ts';

const run = promisify(execFile);
/** A disk that is busy for longer is not waited for. */
const SYNC_MS = 30_000;

/**
 * Fetches an npm package with everything it needs into the package cache and returns the id of the tree. npm runs
 * confined, and scripts of packages do not run; when all is there the server is started once, confined and without a
 * network, for what Node compiles of it. The tree appears under its name only when it is complete; a failure or an abort
 * leaves nothing. Throws `runtime/package-not-found`, `runtime/prefetch-failed` or `runtime/aborted`.
 */
export async function prefetchNpm(
  environment: RuntimeEnvironment,
  bubblewrap: Bubblewrap,
  source: PackageSource,
  request: PrepareRequest,
): Promise<string> {
  const { report, signal } = request;
  const packages = packagesDirectory(environment);
  using upstream = await Upstream.open(environment, await request.caCert?.());
  report.step(`Looking up ${npmSpecifier(source)}`);
  const { version, packument } = await upstream.resolve(source, signal);
  const reference = treeId(source.name, version);
  if (await hasTree(environment, reference)) return reference;
  const specifier = `${source.name}@${version}`;
  report.step(`Fetching ${specifier}`);
  const node = await realpath(environment.execPath);
  const stage = await scratchDirectory(packages, environment);
  try {
    const tree = path.join(stage, 'tree');
    await mkdir(tree);
    await writeManifest(tree, source.name);
    await npmInstall({
      bubblewrap,
      upstream,
      stage,
      specifier,
      signal,
      npm: await findNpm(environment),
      node,
      known: { name: source.name, packument },
      onDownload: (count) => report.detail(`${count} downloads`),
    });
    // npm could write to it, and what it says decides which program runs.
    await writeManifest(tree, source.name);
    await checkTree({ tree, specifier, registry: GATEWAY });
    report.step(`Compiling ${specifier}`);
    await compileAhead({ bubblewrap, node, stage, signal });
    await moveIntoPlace(tree, path.join(packages, reference), environment);
    return reference;
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

/** Replaces whatever is there: it may be a link by now. */
export async function writeManifest(tree: string, packageName: string): Promise<void> {
  const file = path.join(tree, 'package.json');
  await rm(file, { recursive: true, force: true });
  await writeFile(file, treeManifest(packageName), { flag: 'wx', mode: 0o644 });
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
