import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';

/** For what the supervisor does to its end even when nobody waits any more: a Ctrl-C only ends the waiting, and says so. */
export async function onlyWaiting(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!hasCode(error, 'run/cancelled')) throw error;
    throw new SkepError('run/cancelled', {
      message: 'not waited for',
      hint: 'what was begun goes on; see skep list --all',
      cause: error,
    });
  }
}
