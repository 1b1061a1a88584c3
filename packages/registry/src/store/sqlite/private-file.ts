import { open, stat } from 'node:fs/promises';
import { platform } from 'node:os';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Log } from '@skep/core/log/log.ts';

/** SQLite's log and index get the mode that the database file has when they are made. */
const COMPANIONS = ['', '-wal', '-shm'] as const;

/**
 * Makes an empty file that only its owner may read, unless there is one: SQLite would make it as the umask has it, and a
 * store holds the names of entries that few callers may see. Returns whether it was made.
 */
export async function createPrivately(path: string): Promise<boolean> {
  try {
    await (await open(path, 'ax', 0o600)).close();
    return true;
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
    // A link that leads to nothing yet exists too.
    await (await open(path, 'a', 0o600)).close();
    return false;
  }
}

/** Warns of files that were made by somebody else, or by an earlier version; whose they are meant to be is not known here. */
export async function warnOfOtherReaders(path: string, log: Log): Promise<void> {
  if (platform() === 'win32') return;
  for (const companion of COMPANIONS) {
    const file = `${path}${companion}`;
    const mode = await stat(file).then(
      (found) => found.mode & 0o777,
      () => 0,
    );
    if ((mode & 0o077) === 0) continue;
    log.warn(
      { file, mode: mode.toString(8).padStart(4, '0') },
      'other users of this machine may open the store; keep it to its owner with chmod 0600',
    );
  }
}

/** Path that keeps everything in memory only: nothing is written, and a restart begins empty. */
export const IN_MEMORY = ':memory:';
