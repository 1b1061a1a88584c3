import path from 'node:path';
import { withLock } from '@skep/core/files/lock.ts';

const LOCK_MS = 60_000;

/**
 * Runs `settle` while nobody else says that a volume is shared, makes one, or lets one go, where it is about any. Without
 * a directory of locks nobody else is there. Fails with `file/locked` after a minute.
 */
export function settlingVolumes<Result>(
  { locksDir }: { readonly locksDir?: string | undefined },
  about: boolean,
  settle: () => Promise<Result>,
): Promise<Result> {
  if (!about || locksDir === undefined) return settle();
  const what = 'the volumes that servers share';
  return withLock(path.join(locksDir, 'volumes.lock'), { waitMs: LOCK_MS, what }, settle);
}
