import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isMissingPackage, npmComplaint } from '../npm/failure.ts';

/**
 * What a build that failed becomes: `runtime/package-not-found` when the package itself is what is missing, else
 * `runtime/build-failed` with the last words of the step that failed. `subject` is the package as the user wrote it,
 * `output` the builder's text, `failure` what the engine said.
 */
export function buildFailure(subject: string, output: string, failure: string): SkepError {
  const step = failedStep(output);
  if (isMissingPackage(output) || isMissingForUv(subject, step)) {
    return new SkepError('runtime/package-not-found', { message: `package "${subject}" was not found` });
  }
  return new SkepError('runtime/build-failed', {
    message: `the image for "${subject}" could not be built: ${lastWords(step) || failure}`,
    detail: { output },
  });
}

/** Earlier steps may have complained too, and gone on. */
function failedStep(output: string): readonly string[] {
  const lines = output.split('\n').filter((line) => line !== '');
  return lines.slice(lines.findLastIndex((line) => /^Step \d+\/\d+ :/.test(line)) + 1);
}

/** Its error lines where it marks them as such, else its last lines. npm begins with the reason and ends with advice. */
function lastWords(step: readonly string[]): string {
  const ofNpm = step.filter((line) => /^npm (?:error|ERR!)/.test(line));
  if (ofNpm.length > 0) return npmComplaint(ofNpm.join('\n'));
  const marked = step.filter((line) => /^(?:skep:|error:|cause:|ERROR)/.test(line));
  return (marked.length > 0 ? marked.slice(-2) : step.slice(-3)).join('; ');
}

/** uv names the first package that it cannot find; that may also be one that ours depends on. */
function isMissingForUv(subject: string, step: readonly string[]): boolean {
  const name = /^uvx:\/\/([^@]+)/.exec(subject)?.[1];
  if (name === undefined) return false;
  return step.some((line) => {
    const missing =
      /\bBecause (?:there is no version of ([\w.-]+?)==|([\w.-]+) was not found in the package registry)/.exec(
        line,
      );
    return missing !== null && normal(missing[1] ?? missing[2] ?? '') === normal(name);
  });
}

/** PEP 503. */
const normal = (name: string): string => name.replaceAll(/[-_.]+/g, '-').toLowerCase();
