import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Output } from '../host.ts';

/**
 * The error for a configuration with problems. One is the error itself; several are written first, a line each, and
 * the error counts them.
 */
export function problemsError(path: string, problems: readonly string[], stderr: Output): SkepError {
  const [only] = problems;
  // The line says all there is to do, so there is no hint.
  if (problems.length === 1 && only !== undefined) {
    return new SkepError('config/invalid', { message: only, hint: '' });
  }
  for (const problem of problems) stderr.write(`${printable(problem)}\n`);
  return new SkepError('config/invalid', {
    message: `${String(problems.length)} problems in the configuration "${path}"`,
    hint: 'correct the lines above and try again',
  });
}
