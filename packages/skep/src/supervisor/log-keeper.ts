import { copyFile, glob, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Places } from '@skep/core/files/places.ts';
import type { Log } from '@skep/core/log/log.ts';
import { SANDBOX_LOGS } from '../runtime/sandbox/places.ts';
import type { Clock } from './clock.ts';

/** As much as an engine keeps per container (runtime/docker/container-body.ts). */
const LIMIT_BYTES = 10 * 1024 * 1024;
const EVERY_MS = 10_000;

/** The generation before the one that is written. */
export const earlierLog = (file: string): string => `${file}.1`;

/**
 * Empties a log that has grown beyond `limitBytes` and keeps what was in it as the one earlier generation. Writers hold
 * the file open for appending and go on at its new end; what is written in the instant between copy and cut is lost.
 */
export async function capLog(file: string, limitBytes = LIMIT_BYTES): Promise<void> {
  try {
    if ((await stat(file)).size <= limitBytes) return;
    await copyFile(file, earlierLog(file));
    await truncate(file);
  } catch (error) {
    // Its workload was removed meanwhile.
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

export interface LogKeeperOptions {
  readonly places: Places;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Caps the logs of the supervisor, of proxies and of sandboxed workloads until the signal says so. Never rejects. */
export async function keepLogsSmall({ places, clock, signal, log }: LogKeeperOptions): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const file of glob(['logs/*.log', SANDBOX_LOGS], { cwd: places.dataDir })) {
        await capLog(join(places.dataDir, file));
      }
      await clock.sleep(EVERY_MS, signal);
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error }, 'a log could not be kept small');
      await clock.sleep(EVERY_MS, signal).catch(() => {
        // Only the signal ends the wait early, and the loop asks for it.
      });
    }
  }
}
