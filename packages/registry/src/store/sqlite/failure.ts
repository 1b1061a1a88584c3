import { SkepError } from '@skep/core/errors/skep-error.ts';

/** SQLite result codes (sqlite.org/rescode.html), primary part. */
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;

/** Whatever the driver throws, as an error that names the file. */
export function sqliteFailure(path: string, cause: unknown): SkepError {
  if (cause instanceof SkepError) return cause;
  if (isBusy(cause)) {
    const message = `the store "${path}" is in use by another process`;
    return new SkepError('store/locked', { message, cause });
  }
  const text = cause instanceof Error ? cause.message : String(cause);
  const message = `the store "${path}" failed: ${text}`;
  return new SkepError('store/failed', { message, cause });
}

export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false;
  const primary = error.errcode & 0xff;
  return primary === SQLITE_BUSY || primary === SQLITE_LOCKED;
}
