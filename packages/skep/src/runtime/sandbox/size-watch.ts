import { execFile } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What a package may take of the disk while it is fetched, in KiB. */
export const MAX_FETCH_KIB = 4 * 1024 * 1024;
const LOOK_MS = 1000;

export interface SizeWatch extends AsyncDisposable {
  /** Aborts when the directory takes more than it may. */
  readonly tooLarge: AbortSignal;
}

/** Looks at what a directory takes of the disk until it is disposed of. By du(1), which is quick. */
export function watchSize(directory: string, maxKib: number): SizeWatch {
  const exceeded = new AbortController();
  const over = new AbortController();
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted) {
      // What vanishes meanwhile makes it fail, with a sum all the same.
      const { stdout } = await run('du', ['-sk', '--', directory]).catch(
        (error: { stdout?: string }) => error,
      );
      if (Number.parseInt(stdout ?? '0', 10) > maxKib) return exceeded.abort();
      await pause(LOOK_MS, undefined, { signal: over.signal }).catch(() => {});
    }
  };
  const watching = watch();
  return {
    tooLarge: exceeded.signal,
    async [Symbol.asyncDispose]() {
      over.abort();
      await watching;
    },
  };
}
