import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { Clock } from '@skep/core/time/clock.ts';

const MEASURE_EVERY_MS = 200;

export interface FolderLimit {
  readonly folder: string;
  /** Where it is filled from, for the message. */
  readonly url: string;
  readonly maxBytes: number;
  readonly clock: Pick<Clock, 'after'>;
}

/**
 * Measures now and then how much a folder holds while another program fills it, and aborts the returned signal with
 * `source/too-large` beyond the limit; git itself has no limit for what it fetches. `stop` ends the measuring.
 */
export function limitFolder({ folder, url, maxBytes, clock }: FolderLimit): {
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
      if ((await folderSize(folder)) > maxBytes) over.abort(tooLarge(url, maxBytes));
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

/** For a repository that gives more than a fetch of one file may take. */
export function tooLarge(url: string, maxBytes: number): SkepError {
  const message = `"${url}" gives more than ${maxBytes} bytes for one file`;
  return new SkepError('source/too-large', { message, detail: { maxBytes } });
}

/** Bytes of all files in a folder, at any depth. Files that vanish meanwhile count nothing. */
export async function folderSize(folder: string): Promise<number> {
  const entries = await ifThere(readdir(folder, { withFileTypes: true, recursive: true }));
  const files = entries?.filter((entry) => entry.isFile()) ?? [];
  const stats = await Promise.all(files.map((file) => ifThere(stat(join(file.parentPath, file.name)))));
  return stats.reduce((sum, one) => sum + (one?.size ?? 0), 0);
}
