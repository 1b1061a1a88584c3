import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { Mount } from './mounts.ts';
import { requireAnswers } from './silent-source.ts';

export interface IgnoreCheck {
  /** `~/.config/skep/skepignore` (docs/behaviour/run.md#ignore-files). */
  readonly file: string;
  /** False: the person does not want that one heeded. */
  readonly globally: boolean;
  readonly mounts: readonly Mount[];
  /** How to say that the user's file is not to be heeded, for the hint. */
  readonly override: string;
}

/** The file in a mounted directory that says what of it must stay hidden. */
const LOCAL = '.skepignore';
const MAX_BYTES = 1024 * 1024;

/**
 * Refuses to mount a directory while the user's ignore file, or one in that directory, names something: hiding it is not
 * available yet, and showing what somebody asked to hide would be worse than not to start. Fails with
 * `usage/not-available`, or with `run/source-silent`.
 */
export async function checkNothingToHide({ file, globally, mounts, override }: IgnoreCheck): Promise<void> {
  await requireAnswers(mounts);
  const everywhere = globally && mounts.length > 0 && (await namesSomething(file));
  for (const { source } of mounts) {
    if (!(await isDirectory(source))) continue;
    if (everywhere) throw refused(file, source, `to mount it with everything in it, ${override}`);
    const local = join(source, LOCAL);
    if (!(await namesSomething(local))) continue;
    throw refused(local, source, 'mount what may be seen by itself, or remove that file');
  }
}

function refused(file: string, source: string, hint: string): SkepError {
  return new SkepError('usage/not-available', {
    message: `"${file}" says what mounts must hide, which is not available yet, so "${source}" is not mounted`,
    hint,
  });
}

/** What is not there hides nothing; what cannot be looked at may, and reading its file says why not. */
async function isDirectory(source: string): Promise<boolean> {
  try {
    return (await stat(source)).isDirectory();
  } catch (error) {
    const errno = errnoOf(error);
    return errno !== 'ENOENT' && errno !== 'ENOTDIR';
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
