import { SkepError } from '@skep/core/errors/skep-error.ts';
import { parseText, readText } from '@skep/core/files/read-limited.ts';
import { memberPlace } from '@skep/core/json/member-place.ts';
import { repeatedMember } from '@skep/core/json/scan.ts';
import type { Shape } from '@skep/core/settings/shape.ts';

const MAX_BYTES = 1024 * 1024;

export interface ConfigFile {
  readonly path: string;
  /** How people call it. */
  readonly what: string;
  /** What to do about one that is wrong, where the code does not say enough. */
  readonly hint?: string;
}

/**
 * A configuration that a flag names, in JSON or YAML, whatever its name. Fails with `config/invalid` naming what is wrong and
 * where, and with `file/*`. What is said twice is wrong: whoever reads the file takes the one or the other for what counts.
 */
export async function readConfigFile<T>(file: ConfigFile, shape: Shape<T>): Promise<T> {
  const { path, what } = file;
  const text = await readText(path, { maxBytes: MAX_BYTES, what });
  const isJson = /^\s*\{/u.test(text);
  const value = isJson
    ? parseText(text, path, { maxBytes: MAX_BYTES, what }).value
    : await fromYaml(text, file);
  const twice = isJson ? repeatedMember(text) : undefined;
  if (twice !== undefined) throw invalidFile(file, `has "${twice}" twice`);
  return shape(value, (why, ...at) => {
    const line = isJson && at.length > 0 ? memberPlace(text, at)?.line : undefined;
    const key = at.length === 0 ? '' : `"${at.join('.')}" `;
    throw invalidFile(file, `${lineText(line)}${key}${why}`);
  });
}

/** Nothing of it is loaded for JSON. */
async function fromYaml(text: string, file: ConfigFile): Promise<unknown> {
  const { parse, YAMLParseError } = await import('yaml');
  try {
    return parse(text);
  } catch (error) {
    // An error without a place is about references that lead to themselves or to too much.
    const place = error instanceof YAMLParseError ? error : undefined;
    const why = place?.code === 'DUPLICATE_KEY' ? 'a key is there twice' : 'neither JSON nor YAML';
    throw invalidFile(file, `${lineText(place?.linePos?.[0].line)}${why}`);
  }
}

const lineText = (line: number | undefined): string => (line === undefined ? '' : `line ${line}: `);

/** The error of a file that was read and is wrong. */
export function invalidFile({ path, what, hint }: ConfigFile, why: string): SkepError {
  return new SkepError('config/invalid', { message: `${what} "${path}": ${why}`, hint });
}
