import { createReadStream } from 'node:fs';
import { chmod, glob, rename, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Places } from '@skep/core/files/places.ts';
import type { Log } from '@skep/core/log/log.ts';
import { earlierLog } from '../runtime/sandbox/log-file.ts';
import type { Clock } from '@skep/core/time/clock.ts';

/** As much as an engine keeps per container (runtime/docker/container-body.ts). */
const LIMIT_BYTES = 10 * 1024 * 1024;
const EVERY_MS = 2_000;
/** While a log grows so fast that it would be far over its limit by then. */
const GROWING_MS = 100;

/**
 * Empties a log that has grown beyond `limitBytes` and keeps its end, as much as that, as the one earlier generation.
 * Writers hold the file open for appending and go on at its new end; what is written in the instant between copy and cut
 * is lost. True when it was cut.
 */
export async function capLog(file: string, limitBytes = LIMIT_BYTES): Promise<boolean> {
  try {
    const { size } = await stat(file);
    if (size <= limitBytes) return false;
    // A server that writes to it can shut it.
    await chmod(file, 0o600);
    const draft = `${earlierLog(file)}.new`;
    const end = createReadStream(file, {
      start: size - limitBytes,
      end: Math.max(size - limitBytes, size - 1),
    });
    await writeFile(draft, end, { mode: 0o600 });
    await truncate(file);
    await rename(draft, earlierLog(file));
    return true;
  } catch (error) {
    // Its workload was removed meanwhile.
    if (errnoOf(error) !== 'ENOENT') throw error;
    return false;
  }
}

export interface LogKeeperOptions {
  readonly places: Places;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/**
 * Caps the logs of the supervisor and of proxies until the signal says so. Never rejects. The first
 * look comes after a while, because a supervisor that has just begun has better things to do.
 */
export async function keepLogsSmall({ places, clock, signal, log }: LogKeeperOptions): Promise<void> {
  for (let cut = false; !signal.aborted;) {
    try {
      await clock.sleep(cut ? GROWING_MS : EVERY_MS, signal);
      cut = false;
      for await (const file of glob('logs/*.log', { cwd: places.dataDir })) {
        // One that cannot be capped must not keep the others from it.
        const capped = await capLog(join(places.dataDir, file)).catch((error: unknown) => {
          log.warn({ err: error, file }, 'a log could not be kept small');
          return false;
        });
        cut ||= capped;
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'a log could not be kept small');
    }
  }
}
