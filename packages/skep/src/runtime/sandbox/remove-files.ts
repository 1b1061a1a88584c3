import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';

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
