import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { removeWhole, scratchDirectory, sweepDirectory } from './own-directories.ts';
import { copyAhead, isCopiedAhead } from './package-copy.ts';
import { hasTree, isTreeId } from './package-trees.ts';
import { makePipes } from './pipes.ts';
import { treeOf, workloadPlaces } from './places.ts';

/** Where they lie, which no sandbox sees. */
const readyDirectories = ({ dataDir }: RuntimeEnvironment): string => path.join(dataDir, 'ready');

/** Where the one for the next workload of a package is, where there is one. */
export const readyDirectory = (environment: RuntimeEnvironment, reference: string): string =>
  path.join(readyDirectories(environment), reference);

/**
 * Has a directory ready that the next workload of a package becomes, whoever starts it (decision 0465): with its pipes, and a
 * copy of the package's folder (package-copy.ts). Nothing is made for a package that is not there, or where one is ready.
 * Fails with `runtime/start-failed`.
 */
export async function keepReady(environment: RuntimeEnvironment, reference: string): Promise<void> {
  if (!(await hasTree(environment, reference))) return;
  const ready = readyDirectory(environment, reference);
  const parent = readyDirectories(environment);
  if (existsSync(ready)) {
    const places = workloadPlaces(ready);
    if (!existsSync(places.copied) || (await isCopiedAhead(places, treeOf(environment, reference)))) return;
    // Its copy may have been lost with the machine, or be of a package that was fetched before.
    await removeWhole(parent, reference, environment);
  }
  const draft = await scratchDirectory(parent, environment);
  try {
    const places = workloadPlaces(draft);
    await makePipes(places, true);
    await copyAhead(environment, reference, places);
    await rename(draft, ready);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process was faster.
    if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') throw error;
  }
  // Whoever has removed the package meanwhile did not find this.
  if (!(await hasTree(environment, reference))) await dropReady(environment, reference);
}

/** Removes the one of a package; another name is not ours and stays. Idempotent. */
export async function dropReady(environment: RuntimeEnvironment, reference: string): Promise<void> {
  if (isTreeId(reference)) await removeWhole(readyDirectories(environment), reference, environment);
}

/** Removes those of all packages but the used ones, and what is left of making one. */
export async function sweepReady(environment: RuntimeEnvironment, used: ReadonlySet<string>): Promise<void> {
  const all = (await ifThere(readdir(readyDirectories(environment)))) ?? [];
  // Whoever takes one meanwhile gets all of it, or nothing.
  for (const name of all) if (!used.has(name)) await dropReady(environment, name);
  await sweepDirectory(readyDirectories(environment), used);
}
