import { readdir, readFile } from 'node:fs/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';

/** Text of an optional file of the user's; undefined when there is none. Throws `config/unreadable` otherwise. */
export async function userFile(file: string): Promise<string | undefined> {
  try {
    return await ifThere(readFile(file, 'utf8'), 'ENOTDIR');
  } catch (error) {
    throw new SkepError('config/unreadable', { message: `cannot read "${file}"`, cause: error });
  }
}

/** Names of what a directory of the user's holds; none where there is none. Throws `config/unreadable` otherwise. */
export async function userDirectory(directory: string): Promise<readonly string[]> {
  try {
    return (await ifThere(readdir(directory), 'ENOTDIR')) ?? [];
  } catch (error) {
    throw new SkepError('config/unreadable', { message: `cannot read "${directory}"`, cause: error });
  }
}
