import { SkepError } from '@skep/core/errors/skep-error.ts';
import { parseText, readText } from '@skep/core/files/read-limited.ts';
import { memberPlace } from '@skep/core/json/member-place.ts';
import type { Shape } from '@skep/core/settings/shape.ts';

const MAX_BYTES = 1024 * 1024;

/**
 * A configuration that a flag names, in JSON or YAML. `what` is how people call it. Fails with `config/invalid` naming what is
 * wrong and where, and with `file/*`.
 */
export async function readConfigFile<T>(path: string, what: string, shape: Shape<T>): Promise<T> {
  const text = await readText(path, { maxBytes: MAX_BYTES, what });
  const isJson = /^\s*\{/u.test(text);
  const value = isJson
    ? parseText(text, path, { maxBytes: MAX_BYTES, what }).value
    : await fromYaml(text, path, what);
  return shape(value, (why, ...at) => {
    const line = isJson && at.length > 0 ? memberPlace(text, at)?.line : undefined;
    const key = at.length === 0 ? '' : `"${at.join('.')}" `;
    throw invalid(path, what, `${line === undefined ? '' : `line ${line}: `}${key}${why}`);
  });
}

/** Nothing of it is loaded for JSON. */
async function fromYaml(text: string, path: string, what: string): Promise<unknown> {
  const { parse, YAMLParseError } = await import('yaml');
  try {
    return parse(text);
  } catch (error) {
    // An error without a place is about references that lead to themselves or to too much.
    const line = error instanceof YAMLParseError ? error.linePos?.[0].line : undefined;
    throw invalid(path, what, `${line === undefined ? '' : `line ${line}: `}neither JSON nor YAML`);
  }
}

function invalid(path: string, what: string, why: string): SkepError {
  return new SkepError('config/invalid', { message: `${what} "${path}": ${why}` });
}
