import { chmod, lstat, mkdir } from 'node:fs/promises';
import { errnoOf } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/**
 * Makes a directory that is this user's own, and fails with `supervisor/unreachable` when it is somebody else's or not
 * a directory. Others are shut out where the file system can do that; see `whyNotPrivate`.
 */
export async function ensureOwn(directory: string, uid: number | undefined): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (cause) {
    // What stands there instead is told below.
    if (errnoOf(cause) !== 'EEXIST')
      throw untrusted(directory, `it cannot be made (${errnoOf(cause) ?? '?'})`);
  }
  const stat = await lstat(directory);
  if (!stat.isDirectory()) throw untrusted(directory, 'it is not a directory');
  if (uid !== undefined && stat.uid !== uid) throw untrusted(directory, 'it belongs to another user');
  if (uid !== undefined && (stat.mode & 0o077) !== 0) await chmod(directory, 0o700);
}

/**
 * What keeps a directory from being a place for a socket, `undefined` when nothing does: where others may write they
 * could answer in our place, and some file systems know no permissions.
 */
export async function whyNotPrivate(directory: string, uid: number | undefined): Promise<string | undefined> {
  if (uid === undefined) return undefined;
  try {
    const stat = await lstat(directory);
    if (!stat.isDirectory()) return 'it is not a directory';
    if (stat.uid !== uid) return 'it belongs to another user';
    return (stat.mode & 0o077) === 0 ? undefined : 'others may enter it';
  } catch (error) {
    return errnoOf(error) ?? 'unexpected failure';
  }
}

function untrusted(directory: string, reason: string): SkepError {
  return new SkepError('supervisor/unreachable', {
    message: `the supervisor's directory "${directory}" cannot be used: ${reason}`,
    hint: 'remove it, or set XDG_STATE_HOME to a directory of your own',
  });
}
