import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errnoOf } from './errno.ts';

/**
 * Makes a directory with those above it, all with this mode; one that is there is fine. Fails with the system's own error of
 * the first that cannot be made: Node says ENOENT where a file system is read-only.
 */
export async function makeDirectory(directory: string, mode: number): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode });
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
    await makeOneByOne(directory, mode);
  }
}

async function makeOneByOne(directory: string, mode: number): Promise<void> {
  try {
    await makeUnlessThere(directory, mode);
  } catch (error) {
    const above = dirname(directory);
    if (errnoOf(error) !== 'ENOENT' || above === directory) throw error;
    await makeOneByOne(above, mode);
    await makeUnlessThere(directory, mode);
  }
}

async function makeUnlessThere(directory: string, mode: number): Promise<void> {
  try {
    await mkdir(directory, { mode });
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
}
