import { isAbsolute, posix, resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** A directory or file of the host that a workload sees. */
export interface Mount {
  /** Absolute host path. */
  readonly source: string;
  /** Absolute POSIX path inside. */
  readonly target: string;
  readonly readOnly: boolean;
}

// A container side never needs them, and a host side with them is far more likely an attack than a directory.
const FORBIDDEN = /[$&;|`\0]/;
const WINDOWS = /^([A-Za-z]:[\\/][^:]*)(?::(.*))?$/;

/**
 * Reads one mount declaration of a profile (docs/behaviour/run.md#mounts): `path` (same on both sides) or
 * `host:container`. Relative host paths are resolved against `cwd` now, so that a later restart means the same
 * directory.
 */
export function parseMount(text: string, readOnly: boolean, cwd: string): Mount {
  const [host, inside] = splitSides(text);
  if (host === '' || inside === '') throw invalid(text, 'a side is empty');
  if (FORBIDDEN.test(text)) throw invalid(text, 'it contains one of $ & ; | ` or NUL');
  if (WINDOWS.test(inside)) throw invalid(text, 'the container side must be a POSIX path');
  const source = resolve(cwd, host);
  const target = posix.normalize(isAbsolute(inside) ? inside : `/${posix.relative('.', inside)}`);
  return { source, target: target.length > 1 ? target.replace(/\/$/, '') : target, readOnly };
}

/** Reads `--volume host-path:container-path[:ro]`; a lone path or any option but `ro` is an error (`run/invalid-volume`). */
export function parseVolume(text: string, cwd: string): Mount {
  const readOnly = text.endsWith(':ro');
  const declaration = readOnly ? text.slice(0, -':ro'.length) : text;
  const [host, inside] = splitSides(declaration);
  if (inside === host && !declaration.includes(':')) throw invalid(text, 'the container path is missing');
  if (!inside.startsWith('/')) throw invalid(text, 'the container path must begin with /');
  return parseMount(declaration, readOnly, cwd);
}

function splitSides(text: string): readonly [string, string] {
  const windows = WINDOWS.exec(text);
  if (windows) return [windows[1] ?? '', windows[2] ?? windows[1] ?? ''];
  const parts = text.split(':');
  if (parts.length > 2) throw invalid(text, 'too many colons');
  const [host = '', inside = host] = parts;
  return [host, inside];
}

function invalid(text: string, reason: string): SkepError {
  return new SkepError('run/invalid-volume', {
    message: `invalid volume format: ${JSON.stringify(text)} (${reason})`,
  });
}
