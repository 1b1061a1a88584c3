import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isMissingPackage, npmComplaint } from '../npm/failure.ts';
import { ENGINE_FULL, FREE_ENGINE_DISK } from './failure.ts';

/**
 * What a build that failed becomes: `runtime/package-not-found` when the package itself is what is missing, else
 * `runtime/build-failed` with the last words of the step that failed. `subject` is the package as the user wrote it,
 * `output` the builder's text, `failure` what the engine said.
 */
export function buildFailure(subject: string, output: string, failure: string): SkepError {
  const step = failedStep(output);
  if (isMissingPackage(output) || isMissingForUv(subject, step) || isMissingForGo(subject, step)) {
    return new SkepError('runtime/package-not-found', { message: `package "${subject}" was not found` });
  }
  const words = lastWords(step) || failure;
  const hint = HINTS.find(([pattern]) => pattern.test(`${words}\n${failure}`))?.[1];
  return new SkepError('runtime/build-failed', {
    message: `the image for "${subject}" could not be built: ${words}`,
    detail: { output },
    ...(hint === undefined ? {} : { hint }),
  });
}

/** What to do about the failures that have nothing to do with the package. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [ENGINE_FULL, FREE_ENGINE_DISK],
  [/certificate|self.signed|x509|UnknownIssuer/i, 'give the authority that signed it: --ca-cert FILE'],
  [
    /\bE?40[13]\b|unauthorized|forbidden|ENEEDAUTH/i,
    'sign in: skep config set-build-auth-file, or set-build-env --from-secret',
  ],
  [/no package manager/, 'give another base image with --runtime-image'],
  [
    /cannot tell what to run/,
    'run another package, or build an image of your own with the program as its entry point',
  ],
];

/** Earlier steps may have complained too, and gone on. */
function failedStep(output: string): readonly string[] {
  const lines = output.split('\n').filter((line) => line !== '');
  return lines.slice(lines.findLastIndex((line) => /^Step \d+\/\d+ :/.test(line)) + 1);
}

/** Its error lines where it marks them as such, else its last lines. npm begins with the reason and ends with advice. */
function lastWords(step: readonly string[]): string {
  const ofNpm = step.filter((line) => /^npm (?:error|ERR!)/.test(line));
  if (ofNpm.length > 0) return npmComplaint(ofNpm.join('\n'));
  const marked = step.filter((line) => /^(?:skep:|error:|cause:|ERROR|go: (?!downloading))/.test(line));
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

/** Go names the module, the package or the version; what else it names is a module that ours needs. */
function isMissingForGo(subject: string, step: readonly string[]): boolean {
  const name = /^go:\/\/([^@]+)/.exec(subject)?.[1];
  if (name === undefined) return false;
  const missing = /404 Not Found|410 Gone|no matching versions|unknown revision|does not contain package/;
  return step.some((line) => line.startsWith(`go: ${name}@`) && missing.test(line));
}

/** PEP 503. */
const normal = (name: string): string => name.replaceAll(/[-_.]+/g, '-').toLowerCase();
