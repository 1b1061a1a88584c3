import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { hostProblem, spelledHost } from './host-rule.ts';
import { parseMount } from './mounts.ts';

/** A right as a person names it to `skep permit` and `skep deny`. */
export type Right =
  | { readonly is: 'host'; readonly host: string; readonly port?: number | undefined }
  /** For every host that its profile lists. */
  | { readonly is: 'port'; readonly port: number }
  /** `readOnly` is undefined where the person did not say. */
  | { readonly is: 'path'; readonly path: string; readonly readOnly?: boolean | undefined };

const MAX_PORT = 65_535;
const WRITE = 'write a host such as api.example.com:443, or a path that begins with / or ./';
/** As much of a wrong argument as a message shows. */
const MAX_SHOWN = 100;

/**
 * Reads `HOST`, `HOST:PORT`, `:PORT`, `PATH`, `PATH:ro` or `PATH:rw`; a path begins with `/` or `.`, and is made absolute
 * from `cwd`. Fails with `usage/invalid-value`, and with `run/invalid-volume` for a path that cannot be mounted.
 */
export function parseRight(text: string, cwd: string): Right {
  return /^(?:\/|\.{1,2}(?:\/|$))/.test(text) ? parsePath(text, cwd) : parseHost(text);
}

function parsePath(text: string, cwd: string): Right {
  const [, path = '', how] = /^(.*?)(?::(ro|rw))?$/s.exec(text) ?? [];
  if (path.includes(':')) {
    throw invalid(
      text,
      'a path has no colon',
      'another place inside the server is given with skep run --volume',
    );
  }
  parseMount(path, true, cwd);
  return { is: 'path', path: resolve(cwd, path), readOnly: how === undefined ? undefined : how === 'ro' };
}

function parseHost(text: string): Right {
  const isBare = isIP(text) !== 0;
  const [, name = '', digits] = (isBare ? undefined : /^(.*?)(?::(\d+))?$/s.exec(text)) ?? [text, text];
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > MAX_PORT))
    throw invalid(text, 'ports are from 1 to 65535', WRITE);
  if (name === '' && port !== undefined) return { is: 'port', port };
  const host = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name;
  const problem = hostProblem(host);
  if (problem !== undefined) throw invalid(text, `it ${problem}`, WRITE);
  return { is: 'host', host: spelledHost(host), ...(port === undefined ? {} : { port }) };
}

function invalid(text: string, why: string, hint: string): SkepError {
  const shown = printable(text).slice(0, MAX_SHOWN);
  return new SkepError('usage/invalid-value', { message: `invalid value "${shown}": ${why}`, hint });
}
