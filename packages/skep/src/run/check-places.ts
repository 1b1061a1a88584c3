import { access, constants, mkdir } from 'node:fs/promises';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Places } from '@skep/core/files/places.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ensureOwn } from '../supervisor/private-directory.ts';

/**
 * Fails with `file/write-failed` when a directory that a workload needs cannot be written, before anything is
 * downloaded or made: a read-only or wrong directory would otherwise be noticed half-way. State and data have to be
 * this user's own (`supervisor/unreachable`).
 */
export async function checkPlaces(places: Places, uid: number | undefined): Promise<void> {
  await ensureOwn(places, uid);
  for (const directory of [places.runConfigsDir, places.locksDir, places.statusesDir, places.logsDir]) {
    try {
      await mkdir(directory, { recursive: true, mode: 0o750 });
      await access(directory, constants.W_OK);
    } catch (cause) {
      throw new SkepError('file/write-failed', {
        message: `cannot write to "${directory}": ${errnoOf(cause) ?? 'unexpected failure'}`,
        detail: { path: directory },
        cause,
      });
    }
  }
}
