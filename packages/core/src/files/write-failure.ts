import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { SkepError } from '../errors/skep-error.ts';
import { errnoOf } from './errno.ts';

interface Reason {
  readonly isSo: string;
  readonly next: string;
}

/** Failures of a disk and not of a file. */
const OF_DISK: Readonly<Record<string, Reason>> = {
  ENOSPC: { isSo: 'is full', next: 'free space on it, then try again' },
  EDQUOT: { isSo: 'has no more room for you', next: 'delete files of yours on it, then try again' },
  EROFS: { isSo: 'can only be read', next: 'have it mounted for writing, or choose another place' },
};

/**
 * Why nothing could be written at `path`, for the end of a message, by the system's name of the failure (`ENOSPC`); and the next
 * step where that is not to look at permissions.
 */
export function whyNotWritten(
  path: string | undefined,
  code: string | undefined,
): { readonly reason: string; readonly hint?: string } {
  if (code === 'EISDIR') return { reason: 'it is a directory', hint: 'name a file' };
  const known = code === undefined ? undefined : OF_DISK[code];
  if (known === undefined) return { reason: code ?? 'unexpected failure' };
  const disk = path === undefined ? 'its disk' : `the disk at "${diskOf(path)}"`;
  return { reason: `${disk} ${known.isSo} (${code})`, hint: known.next };
}

/** What a failed write becomes: `file/write-failed`. `attempt` begins the message: `cannot write "/some/file"`. */
export function writeFailure(attempt: string, path: string, cause: unknown): SkepError {
  const { reason, ...next } = whyNotWritten(path, errnoOf(cause));
  return new SkepError('file/write-failed', {
    message: `${attempt}: ${reason}`,
    ...next,
    detail: { path },
    cause,
  });
}

/** What a failed write to standard output becomes: `file/write-failed`. */
export function outputFailure(cause: unknown): SkepError {
  const { reason, ...next } = whyNotWritten(undefined, errnoOf(cause));
  return new SkepError('file/write-failed', {
    message: `cannot write to standard output: ${reason}`,
    ...next,
    cause,
  });
}

/** The same for an error that nobody expected where it came up; whatever is no failure of a disk is as it was. */
export function nameFullDisk(error: unknown): unknown {
  const code = errnoOf(error);
  if (error instanceof SkepError || code === undefined || !(code in OF_DISK)) return error;
  const path = error instanceof Error && 'path' in error ? error.path : undefined;
  const { reason, ...next } = whyNotWritten(typeof path === 'string' ? path : undefined, code);
  const what = typeof path === 'string' ? `"${path}"` : 'a file';
  return new SkepError('file/write-failed', {
    message: `cannot write ${what}: ${reason}`,
    ...next,
    cause: error,
  });
}

/** Where the disk is mounted that holds a path, which may not be there. */
function diskOf(path: string): string {
  let [at, disk] = [resolve(path), ''];
  let device: number | undefined;
  for (;;) {
    const found = statOf(at);
    if (device !== undefined && found !== undefined && found !== device) return disk;
    if (found !== undefined) [device, disk] = [found, at];
    const above = dirname(at);
    if (above === at) return disk;
    at = above;
  }
}

function statOf(path: string): number | undefined {
  try {
    return statSync(path).dev;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}
