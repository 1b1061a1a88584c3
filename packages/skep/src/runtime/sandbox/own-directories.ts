import { execFile } from 'node:child_process';
import { mkdir, readdir, rename, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import { removeEmpty } from '@skep/core/files/atomic-write.ts';
import { whyNotWritten } from '@skep/core/files/write-failure.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { findProgram } from '../find-program.ts';
import { identify, ownPid } from './linux-process.ts';
import { killBelow } from './stop.ts';

const run = promisify(execFile);
/** A disk that is busy for longer is not waited for. */
const SYNC_MS = 30_000;

/**
 * A path below a directory of ours for what this process makes or removes. The name begins with a dot, as no workload and
 * no package does, and says whose it is, so that what a killed command left can be told from what is in use.
 */
async function scratchPath(parent: string, environment: RuntimeEnvironment): Promise<string> {
  const pid = ownPid();
  const self = await identify(pid);
  return path.join(parent, `.${pid}-${self?.startTime ?? ''}-${environment.randomId()}`);
}

/**
 * Makes such a directory, for this user alone, and removes those of processes that are gone. Where `ready` is there and can
 * be moved, that takes its place.
 */
export async function scratchDirectory(
  parent: string,
  environment: RuntimeEnvironment,
  ready?: string,
): Promise<string> {
  for (;;) {
    await mkdir(parent, { recursive: true, mode: 0o750 });
    await sweepScratch(parent);
    const directory = await scratchPath(parent, environment);
    const moved = ready === undefined ? Promise.reject() : rename(ready, directory);
    if (
      await moved.then(
        () => true,
        () => false,
      )
    )
      return directory;
    const made = await ifThere(mkdir(directory, { mode: 0o700 }).then(() => true));
    if (made === true) return directory;
    // Somebody has removed the last thing in the parent, and the parent with it.
  }
}

async function sweepScratch(parent: string): Promise<void> {
  const names = (await ifThere(readdir(parent))) ?? [];
  for (const name of names.filter((one) => one.startsWith('.'))) {
    if (!(await isInUse(name))) await removeFiles(path.join(parent, name));
  }
}

/** Whether such a name is of a process that runs. */
async function isInUse(name: string): Promise<boolean> {
  const [, owner, startTime] = /^\.(\d+)-(\d+)-/.exec(name) ?? [];
  return startTime !== undefined && (await identify(Number(owner)))?.startTime === startTime;
}

/** Whether its disk is, for those whose program wrote there and failed: what it says of it depends on the user's language. */
export async function isFull(directory: string): Promise<boolean> {
  return (await ifThere(statfs(directory)))?.bavail === 0;
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
    const { reason, ...next } = whyNotWritten(target, code);
    throw new SkepError('runtime/prefetch-failed', {
      message: `cannot write "${target}": ${reason}`,
      ...next,
      cause,
    });
  }
}

/** Removes what is below `parent` under that name, if it is there. Renamed first, so that no half of it is ever used. */
export async function removeWhole(
  parent: string,
  name: string,
  environment: RuntimeEnvironment,
): Promise<void> {
  const doomed = await scratchPath(parent, environment);
  const renamed = await ifThere(rename(path.join(parent, name), doomed).then(() => true));
  if (renamed !== true) return;
  await removeFiles(doomed);
  await removeEmpty(parent);
}

/**
 * Removes a directory of ours with what a server left in it, which may be directories that even their owner cannot enter
 * and trees deeper than any path can be. Throws `file/write-failed`.
 */
export async function removeFiles(directory: string): Promise<void> {
  try {
    await rm(directory, { recursive: true, force: true });
  } catch {
    try {
      // It complains of what another process, or what goes on of the above, removes meanwhile; the rest rm(1) tells.
      await run('chmod', ['-R', 'u+rwx', '--', directory]).catch(() => {});
      await run('rm', ['-rf', '--', directory]);
    } catch (cause) {
      throw new SkepError('file/write-failed', { message: `"${directory}" cannot be removed`, cause });
    }
  }
}

/**
 * Removes everything in a directory of ours whose name is not in `used`, but what a process that runs is making, and the
 * directory when it is empty then.
 */
export async function sweepDirectory(directory: string, used: ReadonlySet<string>): Promise<void> {
  const names = (await ifThere(readdir(directory))) ?? [];
  for (const name of names.filter((one) => !used.has(one))) {
    if (await isInUse(name)) continue;
    await killBelow(path.join(directory, name));
    await removeFiles(path.join(directory, name));
  }
  await removeEmpty(directory);
}
