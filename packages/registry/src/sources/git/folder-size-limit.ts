import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Clock } from '@skep/core/time/clock.ts';

const MEASURE_EVERY_MS = 200;

export interface FolderLimit {
  readonly folder: string;
  readonly maxBytes: number;
  readonly clock: Pick<Clock, 'after'>;
}

/**
 * Measures now and then how much a folder holds while another program fills it, and aborts the returned signal with
 * `source/too-large` beyond the limit; git itself has no limit for what it fetches. `stop` ends the measuring.
 */
export function limitFolder({ folder, maxBytes, clock }: FolderLimit): {
  signal: AbortSignal;
  stop: () => void;
} {
  const over = new AbortController();
  let cancel = (): void => {};
  let stopped = false;
  const next = (): void => {
    if (!stopped && !over.signal.aborted) cancel = clock.after(MEASURE_EVERY_MS, () => void look()).cancel;
  };
  const look = async (): Promise<void> => {
    try {
      if ((await folderSize(folder)) > maxBytes) {
        over.abort(new SkepError('source/too-large', { detail: { maxBytes } }));
      }
      next();
    } catch (error) {
      over.abort(error);
    }
  };
  next();
  return {
    signal: over.signal,
    stop: () => {
      stopped = true;
      cancel();
    },
  };
}

/** Bytes of all files in a folder, at any depth. Files that vanish meanwhile count nothing. */
export async function folderSize(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(unlessGone([]));
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map((file) => stat(join(file.parentPath, file.name)).then(({ size }) => size, unlessGone(0))),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function unlessGone<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (errnoOf(error) === 'ENOENT') return instead;
    throw error;
  };
}
