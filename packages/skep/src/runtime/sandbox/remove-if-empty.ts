import { rmdir } from 'node:fs/promises';
import { errnoOf } from '@skep/core/files/errno.ts';

/** Removes a directory of ours with the last thing in it, so that nothing is left when nothing is used. */
export async function removeIfEmpty(directory: string): Promise<void> {
  try {
    await rmdir(directory);
  } catch (error) {
    const code = errnoOf(error);
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOENT') throw error;
  }
}
