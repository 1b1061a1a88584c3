import { SkepError } from '@skep/core/errors/skep-error.ts';
import { notFetched } from '../gateway/failure.ts';

/** Nothing of that name, or no such version of it. */
export function packageMissing(specifier: string): SkepError {
  return new SkepError('runtime/package-not-found', {
    message: `package "${specifier}" was not found in the Python package index`,
  });
}

export function needsPython(specifier: string, wanted: string, version: string): SkepError {
  return new SkepError('runtime/prefetch-failed', {
    message: `package "${specifier}" needs Python ${wanted}, and this machine has ${version}`,
    hint: 'install a newer Python, or start a container engine, where each package gets its own',
  });
}

/** A dependency on a git repository, a file or a URL: nothing of the kind is fetched outside a container. */
export function notFromIndex(specifier: string, dependency: string): SkepError {
  return new SkepError('runtime/prefetch-failed', {
    message: `package "${specifier}" depends on "${dependency}", which is not in a package index`,
    hint: 'only packages of indexes run in the sandbox; start a container engine to build this one in a container',
  });
}

/** Turns pip's complaint into an error: a dependency from elsewhere, else its last lines. */
export function pipFailure(specifier: string, output: string): SkepError {
  const foreign =
    /^Collecting [^@\s]+ ?@ (\S+)/m.exec(output) ??
    /InvalidRequirement: Invalid URL: (\S+)/.exec(output) ??
    /No such file or directory: '([^']+\.(?:whl|zip|tar\.gz))'/.exec(output);
  if (foreign?.[1] !== undefined) return notFromIndex(specifier, foreign[1]);
  return notFetched(specifier, pipComplaint(output));
}

/** The part of pip's output that a person wants: its errors without prefix, or how a build of it ended. */
function pipComplaint(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  const step = lines.find((line) => line.startsWith('× '))?.slice(2);
  const raised = lines.findLast((line) => /^[\w.]*(?:Error|Exception|Requirement): /.test(line));
  if (step !== undefined) return [step, ...(raised === undefined ? [] : [raised])].join(' ');
  const errors = lines.filter((line) => /^ERROR: (?!Exception:)/.test(line));
  const said = errors.map((line) => line.slice('ERROR: '.length)).slice(-3);
  return said.join('; ') || (raised ?? lines.findLast((line) => line !== '')) || 'pip gave no reason';
}
