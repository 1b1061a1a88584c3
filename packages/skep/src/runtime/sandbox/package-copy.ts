import { execFile, type ExecFileException } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, lstat, readdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { removeEmpty } from '@skep/core/files/atomic-write.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import { whyNotWritten } from '@skep/core/files/write-failure.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { Observed } from '../runtime.ts';
import { bootId } from './linux-process.ts';
import { isFull, removeFiles, scratchDirectory } from './own-directories.ts';
import { packageHome } from './package-trees.ts';
import { packagesDirectory } from './places.ts';
import { bytesBelow } from './usage.ts';

const run = promisify(execFile);

/** Names on one command line, whose length is limited. */
const AT_ONCE = 500;
/** What is larger than this is copied when it is wanted, and lies on the disk once less. */
const AHEAD_BYTES = 32 * 1024 * 1024;

/**
 * Copies the folder of a package into an empty directory; what the package depends on is left out. By cp(1), on another
 * processor than the start that goes on beside it. Throws `file/write-failed`.
 */
export async function copyPackage(source: string, target: string): Promise<void> {
  const names = await ownNames(source);
  for (let from = 0; from < names.length; from += AT_ONCE) {
    const some = names.slice(from, from + AT_ONCE);
    await run('cp', ['-RP', '--', ...some, target], { cwd: source }).catch((error) =>
      failCopy(target, error),
    );
  }
}

const ownNames = async (source: string): Promise<readonly string[]> =>
  (await readdir(source)).filter((name) => name !== 'node_modules');

async function failCopy(target: string, cause: ExecFileException): Promise<never> {
  const { reason, ...next } = whyNotWritten(target, (await isFull(target)) ? 'ENOSPC' : errnoOf(cause));
  const said = printable((cause.stderr ?? '').trim().split('\n').at(-1) ?? '');
  throw new SkepError('file/write-failed', {
    message: `cannot copy the package into "${target}": ${next.hint === undefined ? said || reason : reason}`,
    ...next,
    cause,
  });
}

const READY = '.copy-';
/** A machine that went down may have lost what was not on its disk yet, so a copy is good for the boot it was made in. */
const readyIn = async (tree: string): Promise<string> => path.join(tree, `${READY}${await bootId()}`);

/** Moves the copy that was made ahead to where nothing is; false where there is none that can be moved there. */
export async function takeCopy(tree: string, target: string): Promise<boolean> {
  try {
    const ready = await readyIn(tree);
    // The tree was made by a package manager, and a link would be mounted as where it leads.
    if (!(await lstat(ready)).isDirectory()) return false;
    await rename(ready, target);
    return true;
  } catch {
    return false;
  }
}

/**
 * Makes a copy of the folder of each package that runs ahead of the next workload of it (decision 0449), kept with the
 * package and removed with it. Nothing is made where one is there, where servers get none, or where it would be large.
 */
export async function makeCopies(
  environment: RuntimeEnvironment,
  workloads: readonly Pick<Observed, 'state' | 'reference'>[],
): Promise<void> {
  const running = workloads.filter(({ state }) => state === 'running');
  for (const reference of new Set(running.map((one) => one.reference)))
    await copyAhead(environment, reference);
}

async function copyAhead(environment: RuntimeEnvironment, reference: string): Promise<void> {
  const packages = packagesDirectory(environment);
  const tree = path.join(packages, reference);
  const [there, ready] = [await ifThere(readdir(tree)), await readyIn(tree)];
  if (there === undefined || there.includes(path.basename(ready))) return;
  const home = await packageHome(tree);
  if (home === undefined) return;
  const source = path.join(tree, home);
  const parts = (await ownNames(source)).map((name) => path.join(source, name));
  if (parts.length > AT_ONCE || (await bytesBelow(parts)) > AHEAD_BYTES) return;
  for (const old of there.filter((name) => name.startsWith(READY))) await removeFiles(path.join(tree, old));
  const copy = await scratchDirectory(packages, environment);
  try {
    await copyPackage(source, copy);
    await chmod(copy, 0o755);
    await rename(copy, ready);
  } catch (error) {
    // Somebody else may have made it meanwhile, or removed the package.
    if (existsSync(tree) && !existsSync(ready)) throw error;
  } finally {
    await removeFiles(copy);
    await removeEmpty(packages);
  }
}
