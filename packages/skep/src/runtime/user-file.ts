import { readFile } from 'node:fs/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Text of an optional file of the user's; undefined when there is none. Throws `config/unreadable` otherwise. */
export async function userFile(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) {
      return undefined;
    }
    throw new SkepError('config/unreadable', { message: `cannot read "${file}"`, cause: error });
  }
}
