import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { errnoOf } from '@skep/core/files/errno.ts';
import { removeFiles } from './remove-files.ts';
import { removeIfEmpty } from './remove-if-empty.ts';
import { killBelow } from './stop.ts';

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
