import { execFile } from 'node:child_process';
import { rm, rmdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { killBelow } from './stop.ts';

const run = promisify(execFile);

/**
 * Removes a directory of ours with what a server left in it, which may be directories that even their owner cannot enter
 * and trees deeper than any path can be. Throws `file/write-failed`.
 */
export async function removeFiles(directory: string): Promise<void> {
  try {
    await rm(directory, { recursive: true, force: true });
  } catch {
    try {
      await run('chmod', ['-R', 'u+rwx', '--', directory]);
      await run('rm', ['-rf', '--', directory]);
    } catch (cause) {
      throw new SkepError('file/write-failed', { message: `"${directory}" cannot be removed`, cause });
    }
  }
}

/** Removes a directory of ours with the last thing in it, so that nothing is left when nothing is used. */
export async function removeIfEmpty(directory: string): Promise<void> {
  try {
    await rmdir(directory);
  } catch (error) {
    const code = errnoOf(error);
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOENT') throw error;
  }
}

/** Removes everything in a directory of ours whose name is not in `used`, and the directory when it is empty then. */
export async function sweepDirectory(directory: string, used: ReadonlySet<string>): Promise<void> {
  const names = await readdir(directory).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  });
  for (const name of names.filter((one) => !used.has(one))) {
    await killBelow(path.join(directory, name));
    await removeFiles(path.join(directory, name));
  }
  await removeIfEmpty(directory);
}
