import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isNpmName, isNpmVersion } from './npm-name.ts';

export const ECOSYSTEMS = ['npm', 'pypi', 'go'] as const;

type Ecosystem = (typeof ECOSYSTEMS)[number];

/** A validated package of a protocol scheme (`npx://`, `uvx://`, `go://`). */
export interface PackageSource {
  readonly kind: 'package';
  readonly ecosystem: Ecosystem;
  readonly name: string;
  /** Version or tag; absent means the newest. */
  readonly version?: string;
  /** Absolute path of a project of this machine, which only a person can name. It is its name, and it has no version. */
  readonly directory?: string;
}

interface Grammar {
  readonly ecosystem: Ecosystem;
  /** What a good reference looks like, for the hint. */
  readonly example: string;
  readonly name: (text: string) => boolean;
  readonly version: (text: string) => boolean;
}

const GRAMMARS: Readonly<Record<string, Grammar>> = {
  npx: { ecosystem: 'npm', example: 'npx://@scope/name@1.2.3', name: isNpmName, version: isNpmVersion },
  uvx: { ecosystem: 'pypi', example: 'uvx://name@1.2.3', name: isPypiName, version: isPypiVersion },
  go: { ecosystem: 'go', example: 'go://example.org/path@v1.2.3', name: isGoPath, version: isGoVersion },
};

const SCHEMES = { npm: 'npx', pypi: 'uvx', go: 'go' } as const satisfies Record<Ecosystem, string>;

/** `npx`, `uvx` or `go`. */
export function schemeOf({ ecosystem }: PackageSource): 'npx' | 'uvx' | 'go' {
  return SCHEMES[ecosystem];
}

/** True when the text starts with `npx://`, `uvx://` or `go://`, whatever follows. */
export function isPackageReference(text: string): boolean {
  return grammarOf(text) !== undefined;
}

/**
 * Parses and validates a package reference (docs/behaviour/run.md#packages). The name and version are safe to hand to
 * npm, uv or go as one argument each. `@latest` is the same as no version, so that every ecosystem understands it. A Go
 * project of this machine (`go://./x`, `go://../x`, `go://.`, `go:///x`) is read only with the `cwd` of the person who names
 * it. Throws `target/invalid-package`.
 */
export function parsePackageReference(text: string, cwd?: string): PackageSource {
  const grammar = grammarOf(text);
  if (!grammar) throw invalid(text, 'it has no known scheme', 'use npx://, uvx:// or go://');
  const rest = text.slice(text.indexOf('://') + 3);
  if (grammar.ecosystem === 'go' && IN_DIRECTORY.test(rest)) return localSource(text, rest, cwd);
  const at = rest.indexOf('@', 1);
  const name = at === -1 ? rest : rest.slice(0, at);
  const version = at === -1 ? undefined : rest.slice(at + 1);
  const hint = `write it like ${grammar.example}`;
  if (!grammar.name(name)) throw invalid(text, `"${name}" is no ${grammar.ecosystem} package name`, hint);
  if (version === undefined || version === 'latest') {
    return { kind: 'package', ecosystem: grammar.ecosystem, name };
  }
  if (!grammar.version(version)) throw invalid(text, `"${version}" is no version`, hint);
  return { kind: 'package', ecosystem: grammar.ecosystem, name, version };
}

const IN_DIRECTORY = /^(?:\/|\.{1,2}(?:\/|$))/;
const MAX_PATH = 4096;

function localSource(text: string, place: string, cwd: string | undefined): PackageSource {
  if (cwd === undefined) {
    const hint = 'run it yourself: skep run go://./DIRECTORY';
    throw invalid(text, 'a Go project of this machine is built only when a person names it', hint);
  }
  const directory = path.resolve(cwd, place);
  if (/\p{Cc}/u.test(directory) || directory.length > MAX_PATH) {
    throw invalid(text, 'it is no path', 'write it like go://./server');
  }
  if (place.split('/').includes('...')) {
    throw invalid(
      text,
      'it names several packages',
      'name the directory of one program, such as go://./cmd/server',
    );
  }
  return { kind: 'package', ecosystem: 'go', name: directory, directory };
}

/** The reference as a person would type it; the inverse of `parsePackageReference`. */
export function packageReference(source: PackageSource): string {
  const version = source.version === undefined ? '' : `@${source.version}`;
  return `${SCHEMES[source.ecosystem]}://${source.name}${version}`;
}

/**
 * Checks a package source that did not come from `parsePackageReference` (a catalogue, a saved run configuration); one
 * with a directory was named by a person, or granted. Throws `target/invalid-package`.
 */
export function checkPackageSource(source: PackageSource): PackageSource {
  const { directory } = source;
  const read = parsePackageReference(packageReference(source), directory === undefined ? undefined : '/');
  if (read.directory === directory) return read;
  throw invalid(packageReference(source), 'its directory is another', 'remove the workload and run it again');
}

function grammarOf(text: string): Grammar | undefined {
  const scheme = /^([a-z]+):\/\//.exec(text)?.[1];
  return scheme !== undefined && Object.hasOwn(GRAMMARS, scheme) ? GRAMMARS[scheme] : undefined;
}

function invalid(text: string, why: string, hint: string): SkepError {
  return new SkepError('target/invalid-package', {
    message: `invalid package reference "${text}": ${why}`,
    hint,
  });
}

/**
 * True for a Go import path with a host in front (`example.org/team/server/cmd/x`), after the rules of
 * `module.CheckImportPath`: non-empty elements of ASCII letters, digits and `-._~`, none starting or ending in a dot.
 */
function isGoPath(path: string): boolean {
  const [host = '', ...rest] = path.split('/');
  return (
    path.length <= 512 && GO_HOST.test(host) && rest.length > 0 && rest.every((part) => GO_PART.test(part))
  );
}

/** True for a module version (`v1.2.3`), branch or commit, without a slash. */
function isGoVersion(version: string): boolean {
  return version.length <= 128 && GO_VERSION.test(version);
}

const GO_HOST = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;
const GO_PART = /^[A-Za-z0-9_~-](?:[A-Za-z0-9._~-]*[A-Za-z0-9_~-])?$/;
const GO_VERSION = /^[A-Za-z0-9][A-Za-z0-9.+_-]*$/;

/** True for a distribution name of PEP 508: letters, digits and inner `-`, `_`, `.`. */
function isPypiName(name: string): boolean {
  return name.length <= 128 && PYPI_NAME.test(name);
}

/** True for one exact version as PEP 440 spells it; operators, extras and URLs are not accepted. */
function isPypiVersion(version: string): boolean {
  return version.length <= 128 && PYPI_VERSION.test(version);
}

const PYPI_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const PYPI_VERSION = /^[A-Za-z0-9][A-Za-z0-9.+_!-]*$/;
