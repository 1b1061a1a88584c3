import { realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, posix, resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { requireAnswers, type Asking } from './silent-source.ts';

/** A directory or file of the host that a workload sees. */
export interface Mount {
  /** Absolute host path. */
  readonly source: string;
  /** Absolute POSIX path inside. */
  readonly target: string;
  readonly readOnly: boolean;
}

/** What of a runtime's own workloads share by its name, `volume://name:/data`; see data-paths.ts for what each keeps for itself. */
export interface NamedVolume {
  readonly volume: string;
  /** Absolute POSIX path inside. */
  readonly target: string;
  readonly readOnly: boolean;
}

/** Those of them that a workload may write. */
export const writtenVolumes = (volumes: readonly NamedVolume[] = []): readonly NamedVolume[] =>
  volumes.filter(({ readOnly }) => !readOnly);

/** What a profile or `--volume` declares. */
export type Declared = Mount | NamedVolume;

export const isNamedVolume = (one: Declared): one is NamedVolume => 'volume' in one;

export const isMount = (one: Declared): one is Mount => !isNamedVolume(one);

/** The outer side as it is declared. */
export const sourceText = (one: Declared): string =>
  isNamedVolume(one) ? `volume://${one.volume}` : one.source;

// A container side never needs them, and a host side with them is far more likely an attack than a directory.
const FORBIDDEN = /[$&;|`\0]/;
const RESOURCE = /^([A-Za-z][A-Za-z0-9_-]*):\/\/(.*)$/s;
/** Fit for a file name and for a volume of an engine, whatever stands before it. */
const VOLUME_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
/** True for what a volume can be called. */
export const isVolumeName = (text: string): boolean => VOLUME_NAME.test(text);

const NAMED = 'write volume://NAME:/path, with :ro at the end of --volume for read-only';
const WINDOWS = /^([A-Za-z]:[\\/][^:]*)(?::(.*))?$/;

/**
 * Reads one mount declaration of a profile (docs/behaviour/run.md#mounts): `path` (same on both sides), `host:container`
 * or `volume://name:container`. Relative host paths are resolved against `cwd` now, so that a later restart means the same
 * directory. Fails with `run/invalid-volume`.
 */
export function parseMount(text: string, readOnly: boolean, cwd: string): Declared {
  if (isResource(text)) return parseNamed(text, readOnly);
  const [host, inside] = splitSides(text);
  if (host === '' || inside === '') throw invalid(text, 'a side is empty');
  if (FORBIDDEN.test(text)) throw invalid(text, 'it contains one of $ & ; | ` or NUL');
  if (WINDOWS.test(inside)) throw invalid(text, 'the container side must be a POSIX path');
  const source = resolve(cwd, host);
  const target = posix.normalize(isAbsolute(inside) ? inside : `/${posix.relative('.', inside)}`);
  return { source, target: target.length > 1 ? target.replace(/\/$/, '') : target, readOnly };
}

/** Reads `--volume host-path:container-path[:ro]`; a lone path or another option is `run/invalid-volume`. */
export function parseVolume(text: string, cwd: string): Declared {
  const readOnly = text.endsWith(':ro');
  const declaration = readOnly ? text.slice(0, -':ro'.length) : text;
  if (isResource(declaration)) return parseNamed(declaration, readOnly);
  const [host, inside] = splitSides(declaration);
  if (inside === host && !declaration.includes(':')) throw invalid(text, 'the container path is missing');
  if (!inside.startsWith('/')) throw invalid(text, 'the container path must begin with /');
  return parseMount(declaration, readOnly, cwd);
}

/** A drive of Windows is none. */
const isResource = (text: string): boolean => RESOURCE.test(text) && !WINDOWS.test(text);

function parseNamed(text: string, readOnly: boolean): NamedVolume {
  const [, scheme = '', rest = ''] = RESOURCE.exec(text) ?? [];
  if (scheme.toLowerCase() !== 'volume')
    throw invalid(
      text,
      `nothing of ${scheme}:// can be mounted`,
      `mount host-path:container-path; or ${NAMED}`,
    );
  const [volume = '', inside, ...more] = rest.split(':');
  if (more.length > 0) throw invalid(text, 'too many colons', NAMED);
  if (inside === undefined || inside === '') throw invalid(text, 'the container path is missing', NAMED);
  if (FORBIDDEN.test(text)) throw invalid(text, 'it contains one of $ & ; | ` or NUL');
  if (!isVolumeName(volume))
    throw invalid(
      text,
      'a volume has 1 to 64 letters, digits, ".", "_" and "-", the first a letter or digit',
      NAMED,
    );
  const target = posix.normalize(inside).replace(/(?<=.)\/$/, '');
  if (!target.startsWith('/') || target === '/')
    throw invalid(text, 'the container path must begin with /, and be more than that', NAMED);
  return { volume, target, readOnly };
}

function splitSides(text: string): readonly [string, string] {
  const windows = WINDOWS.exec(text);
  if (windows) {
    const [, host = '', inside = host] = windows;
    if (inside !== host && inside.includes(':')) throw invalid(text, 'too many colons');
    return [host, inside];
  }
  const parts = text.split(':');
  if (parts.length > 2) throw invalid(text, 'too many colons');
  const [host = '', inside = host] = parts;
  return [host, inside];
}

function invalid(text: string, reason: string, hint?: string): SkepError {
  return new SkepError('run/invalid-volume', {
    message: `invalid volume format: ${JSON.stringify(text)} (${reason})`,
    hint,
  });
}

/**
 * Answers with the mounts when the source of each is there; links are followed. Fails with `run/invalid-volume`, or with
 * `run/source-silent` where a file system does not answer.
 */
export async function checkSources(mounts: readonly Mount[]): Promise<readonly Mount[]> {
  await requireAnswers(mounts);
  await Promise.all(mounts.map(checkSource));
  return mounts;
}

async function checkSource(mount: Mount): Promise<void> {
  try {
    await stat(mount.source);
  } catch (error) {
    const missing = errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR';
    throw new SkepError('run/invalid-volume', {
      message: missing
        ? `volume source path does not exist: "${mount.source}"`
        : `failed to access volume source path "${mount.source}"`,
      hint: missing ? 'create it first, or correct the path' : 'check its permissions',
      cause: error,
    });
  }
}

/** Real path by the path that was granted. */
type MountSources = Readonly<Record<string, string>>;

/**
 * Where the sources of mounts lead to, links followed. What this user does not find here, as with a
 * distant engine, is left out.
 */
export async function mountSources(mounts: readonly Mount[]): Promise<MountSources> {
  const real = await Promise.all(
    mounts.map(async ({ source }) => [source, await realSource(source)] as const),
  );
  return Object.fromEntries(real.filter((pair): pair is readonly [string, string] => pair[1] !== undefined));
}

/**
 * Refuses a start when the source of a mount leads elsewhere than on the day it was granted: whoever may write the
 * directory above, a server among them, could have put a link to the user's keys in its place. Fails with
 * `run/not-granted`, or with `run/source-silent` where a file system does not answer, before anything else looks at it.
 */
export async function checkMountSources(
  name: string,
  mounts: readonly Mount[],
  granted: MountSources,
  asking: Asking = {},
): Promise<void> {
  await requireAnswers(mounts, asking);
  for (const { source } of mounts) {
    const before = Object.hasOwn(granted, source) ? granted[source] : undefined;
    if (before === undefined) continue;
    const now = await realSource(source);
    if (now === before) continue;
    throw new SkepError('run/not-granted', {
      message:
        now === undefined
          ? `mount source "${source}" of "${name}" is not to be found any more`
          : `mount source "${source}" of "${name}" leads to "${now}" now, and to "${before}" when it was granted`,
      hint: `put back what was there; or, if it is to be mounted as it is now, remove the workload with skep rm ${name} and run it again`,
    });
  }
}

/** Undefined where the user who runs Skep finds nothing, at the end of a link too. */
const realSource = (source: string): Promise<string | undefined> => realpath(source).catch(() => undefined);

/** Sources that are mounted writable and that other users of this machine can get to, because each directory lets them in. */
export async function openToOthers(mounts: readonly Mount[]): Promise<readonly string[]> {
  const writable = mounts.filter(({ readOnly }) => !readOnly);
  const open = await Promise.all(writable.map(({ source }) => letsOthersIn(source)));
  return writable.flatMap(({ source }, at) => (open[at] === true ? [source] : []));
}

async function letsOthersIn(source: string): Promise<boolean> {
  const real = await realSource(source);
  if (real === undefined) return false;
  for (let at = real; ; at = dirname(at)) {
    const found = await stat(at).catch(() => undefined);
    if (found === undefined || (found.isDirectory() && (found.mode & 0o001) === 0)) return false;
    if (at === dirname(at)) return true;
  }
}
