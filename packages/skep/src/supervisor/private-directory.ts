import { lstatSync, statSync } from 'node:fs';
import { chmod, lstat } from 'node:fs/promises';
import type { Places } from '@skep/core/files/places.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import { makeDirectory } from '@skep/core/files/make-directory.ts';
import { whyNotWritten } from '@skep/core/files/write-failure.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** What a command believes of the files it finds: whose they are decides. */
type Kept = Pick<Places, 'stateDir' | 'dataDir'>;

/**
 * Makes the supervisor's directory, which is this user's own, and fails with `supervisor/unreachable` when it, or what
 * `refuseForeign` looks at, is somebody else's (as with `sudo -E`: what root leaves there its owner could not use any
 * more). Others are shut out where the file system can do that; see `whyNotPrivate`.
 */
export async function ensureOwn(
  places: Kept & Pick<Places, 'supervisorDir'>,
  uid: number | undefined,
): Promise<void> {
  const directory = places.supervisorDir;
  refuseForeign(places, uid);
  if (uid !== undefined && whyNotPrivate(directory, uid) === undefined) return;
  try {
    await makeDirectory(directory, 0o700);
  } catch (cause) {
    // What stands there instead is told below.
    if (errnoOf(cause) !== 'EEXIST') {
      const { reason, hint } = whyNotWritten(directory, errnoOf(cause));
      throw untrusted(directory, `it cannot be made: ${reason}`, hint);
    }
  }
  const found = await ifThere(lstat(directory));
  // A supervisor that has just ended took it along.
  if (found === undefined) return ensureOwn(places, uid);
  if (!found.isDirectory()) throw untrusted(directory, 'it is not a directory');
  if (uid === undefined) return;
  if (found.uid !== uid) throw untrusted(directory, 'it belongs to another user');
  if ((found.mode & 0o077) !== 0) await chmod(directory, 0o700);
}

/**
 * Fails with `supervisor/unreachable` when the state or the data is somebody else's, who could name any process as the host
 * of a workload; a directory that is not there yet is fine.
 */
export function refuseForeign({ stateDir, dataDir }: Kept, uid: number | undefined): void {
  if (uid === undefined) return;
  for (const directory of [stateDir, dataDir]) {
    const owner = ownerOf(directory);
    if (owner !== undefined && owner !== uid) throw untrusted(directory, 'it belongs to another user');
  }
}

function ownerOf(directory: string): number | undefined {
  try {
    return statSync(directory, { throwIfNoEntry: false })?.uid;
  } catch {
    // Who may not look cannot use it either, and is told where it is used.
    return undefined;
  }
}

/**
 * What keeps a directory from being a place for a socket, `undefined` when nothing does: where others may write they
 * could answer in our place, and some file systems know no permissions.
 */
export function whyNotPrivate(directory: string, uid: number | undefined): string | undefined {
  if (uid === undefined) return undefined;
  try {
    const found = lstatSync(directory);
    if (!found.isDirectory()) return 'it is not a directory';
    if (found.uid !== uid) return 'it belongs to another user';
    return (found.mode & 0o077) === 0 ? undefined : 'others may enter it';
  } catch (error) {
    return errnoOf(error) ?? 'unexpected failure';
  }
}

function untrusted(directory: string, reason: string, hint = OWN): SkepError {
  return new SkepError('supervisor/unreachable', {
    message: `the directory "${directory}", where Skep keeps its state, cannot be used: ${reason}`,
    hint,
  });
}

const OWN =
  'run skep as the user it belongs to, or set XDG_STATE_HOME and XDG_DATA_HOME to directories of your own';
