import { stat } from 'node:fs/promises';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { Mount } from '../runtime/runtime.ts';

export interface IgnoreCheck {
  /** `~/.config/skep/skepignore` (spec run-workload §4.6). */
  readonly file: string;
  readonly mounts: readonly Mount[];
  /** How to say that nothing is to be hidden, for the hint. */
  readonly override: string;
}

const MAX_BYTES = 1024 * 1024;

/**
 * Refuses to mount a directory while the user's ignore file names something: hiding it is not available yet, and showing
 * what somebody asked to hide would be worse than not to start. Fails with `usage/not-available`.
 */
export async function checkNothingToHide({ file, mounts, override }: IgnoreCheck): Promise<void> {
  if (mounts.length === 0 || !(await namesSomething(file))) return;
  for (const mount of mounts) {
    if (!(await stat(mount.source)).isDirectory()) continue;
    throw new SkepError('usage/not-available', {
      message: `"${file}" says what mounts must hide, which is not available yet, so "${mount.source}" is not mounted`,
      hint: `to mount it with everything in it, ${override}`,
    });
  }
}

/** Blank lines and comments hide nothing. */
async function namesSomething(file: string): Promise<boolean> {
  try {
    const text = await readText(file, { maxBytes: MAX_BYTES, what: 'ignore file' });
    return text.split('\n').some((line) => line.trim() !== '' && !line.trim().startsWith('#'));
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return false;
    throw error;
  }
}
