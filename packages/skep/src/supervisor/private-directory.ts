import { chmod, lstat, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errnoOf } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/**
 * Makes a directory that is this user's own, and fails with `supervisor/unreachable` when it, or the one it lies in, is
 * somebody else's (as with `sudo -E`: what root leaves there its owner could not use any more). Others are shut out where the file system can do that; see `whyNotPrivate`.
 */
export async function ensureOwn(directory: string, uid: number | undefined): Promise<void> {
  await refuseForeign(dirname(directory), uid);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (cause) {
    // What stands there instead is told below.
    if (errnoOf(cause) !== 'EEXIST')
      throw untrusted(directory, `it cannot be made (${errnoOf(cause) ?? '?'})`);
  }
  const found = await lstat(directory);
  if (!found.isDirectory()) throw untrusted(directory, 'it is not a directory');
  if (uid === undefined) return;
  if (found.uid !== uid) throw untrusted(directory, 'it belongs to another user');
  if ((found.mode & 0o077) !== 0) await chmod(directory, 0o700);
}

/** Fails with `supervisor/unreachable` when the directory is somebody else's; one that is not there yet is fine. */
export async function refuseForeign(directory: string, uid: number | undefined): Promise<void> {
  const owner = await stat(directory).catch(() => undefined);
  if (uid !== undefined && owner !== undefined && owner.uid !== uid)
    throw untrusted(directory, 'it belongs to another user');
}

/**
 * What keeps a directory from being a place for a socket, `undefined` when nothing does: where others may write they
 * could answer in our place, and some file systems know no permissions.
 */
export async function whyNotPrivate(directory: string, uid: number | undefined): Promise<string | undefined> {
  if (uid === undefined) return undefined;
  try {
    const found = await lstat(directory);
    if (!found.isDirectory()) return 'it is not a directory';
    if (found.uid !== uid) return 'it belongs to another user';
    return (found.mode & 0o077) === 0 ? undefined : 'others may enter it';
  } catch (error) {
    return errnoOf(error) ?? 'unexpected failure';
  }
}

function untrusted(directory: string, reason: string): SkepError {
  return new SkepError('supervisor/unreachable', {
    message: `the state directory "${directory}" cannot be used: ${reason}`,
    hint: 'run skep as the user it belongs to, or set XDG_STATE_HOME to a directory of your own',
  });
}
