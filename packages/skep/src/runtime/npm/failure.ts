import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import { notFetched } from '../gateway/failure.ts';

/** `name` or `name@version`, as one argument for npm. */
export function npmSpecifier(source: PackageSource): string {
  return source.version === undefined ? source.name : `${source.name}@${source.version}`;
}

/** Turns npm's complaint into an error: missing package or version, a dependency of another kind, else its first lines. */
export function npmFailure(specifier: string, output: string): SkepError {
  if (isMissingPackage(output) || output.trim() === '') return packageMissing(specifier);
  const foreign = foreignDependency(output);
  if (foreign !== undefined) return notFromRegistry(specifier, foreign);
  return notFetched(specifier, npmComplaint(output));
}

export function packageMissing(specifier: string): SkepError {
  return new SkepError('runtime/package-not-found', {
    message: `package "${specifier}" was not found in the npm registry`,
  });
}

/** A dependency on a git repository, a directory, a file or a URL: nothing of the kind is fetched outside a container. */
export function notFromRegistry(specifier: string, dependency: string): SkepError {
  return new SkepError('runtime/prefetch-failed', {
    message: `package "${specifier}" depends on ${dependency}, which is not in a package registry`,
    hint: 'only packages of registries run in the sandbox; start a container engine to build this one in a container',
  });
}

/** True for npm's answers to a name or version the registry does not have. */
export function isMissingPackage(output: string): boolean {
  return /\bE404\b|\bETARGET\b|404 Not Found/.test(output);
}

/** The part of npm's output a person wants: its error lines without prefix, the log-file hint dropped. */
export function npmComplaint(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.replace(/^npm (?:error|ERR!)\s?/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('A complete log'));
  return lines.slice(0, 3).join('; ') || 'npm gave no reason';
}

/**
 * What npm wanted from somewhere else than the registry, in its sandbox, where there is nothing else: newer ones refuse
 * git by themselves, older ones name the git command, all name an address that cannot be reached or a file that is not there.
 */
function foreignDependency(output: string): string | undefined {
  const named =
    /Refusing to fetch "([^"]+)"/.exec(output) ??
    /command .* ls-remote (?:\S+ )?(\S+:\S+)/.exec(output) ??
    /request to (\S+) failed/.exec(output) ??
    /ENOENT: no such file or directory, \w+ '([^']+)'/.exec(output);
  return named?.[1] === undefined ? undefined : `"${named[1]}"`;
}
