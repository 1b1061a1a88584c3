import { lstat, mkdir } from 'node:fs/promises';
import { errnoOf } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/**
 * Makes a directory that only this user can enter, and fails with `supervisor/unreachable` when somebody else owns it
 * or may enter it: in a shared temporary directory another user could have made it first, to answer in our place.
 */
export async function ensurePrivate(directory: string, uid: number | undefined): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new SkepError('supervisor/unreachable', {
      message: `the runtime directory "${directory}" cannot be made: ${errnoOf(cause) ?? 'unexpected failure'}`,
      cause,
    });
  }
  const stat = await lstat(directory);
  if (uid === undefined) return;
  const reason = !stat.isDirectory()
    ? 'it is not a directory'
    : stat.uid !== uid
      ? 'it belongs to another user'
      : (stat.mode & 0o077) !== 0
        ? 'others may enter it'
        : undefined;
  if (reason === undefined) return;
  throw new SkepError('supervisor/unreachable', {
    message: `the runtime directory "${directory}" cannot be trusted: ${reason}`,
    hint: 'remove it, or set XDG_RUNTIME_DIR to a directory of your own',
  });
}
