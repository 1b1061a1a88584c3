import { setTimeout as sleep } from 'node:timers/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Waits `ms` milliseconds. Rejects with `runtime/aborted` when the signal comes first. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, signal ? { signal } : {});
  } catch (cause) {
    throw new SkepError('runtime/aborted', { cause });
  }
}
