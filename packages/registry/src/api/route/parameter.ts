import type { BundleStatus } from '@skep/core/catalog/bundle.ts';
import { MAX_SERVER_NAME, serverNameFault, versionFault } from '@skep/core/catalog/entry-name.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { decodeCursor } from '../../engine/entry-key.ts';
import { parseInstant } from '../../engine/instant.ts';
import { MAX_SEARCH_CHARACTERS } from '../../engine/block.ts';
import { DEFAULT_LIMITS, type Limits } from '../../shape/limits.ts';

/** A path or query parameter: how it is documented and how its text becomes a value. */
export interface Parameter<T> {
  readonly description: string;
  /** JSON Schema of the value as a client writes it. */
  readonly schema: JsonSchema | ((limits: Limits) => JsonSchema);
  /** `text` is percent-decoded; undefined when absent. Fails with `registry/bad-request`. */
  parse(text: string | undefined, limits: Limits): T;
}

type JsonSchema = Readonly<Record<string, unknown>>;

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** The values of a set of parameters. */
export type Parsed<P extends Parameters> = { readonly [Name in keyof P]: ReturnType<P[Name]['parse']> };

/** Parameter texts as they arrive; a repeated query parameter is a list. */
export type RawParameters = Readonly<Record<string, string | readonly string[] | undefined>>;

export function badRequest(message: string): SkepError {
  return new SkepError('registry/bad-request', { message });
}

/** Parses in the order of declaration, so that the first bad parameter is the one that is named. */
export function parseParameters<P extends Parameters>(
  parameters: P,
  raw: RawParameters,
  limits: Limits = DEFAULT_LIMITS,
): Parsed<P> {
  const values = Object.entries(parameters).map(([name, parameter]) => {
    const text = Object.hasOwn(raw, name) ? raw[name] : undefined;
    if (typeof text === 'object') throw badRequest(`Invalid ${name} parameter: must be given once`);
    return [name, parameter.parse(text, limits)];
  });
  return Object.fromEntries(values) as Parsed<P>;
}

/** A path segment's text: not empty, no white space, nothing that a database refuses in a text. */
export function segment(name: string, text: string | undefined): string {
  if (text === undefined || text.trim() === '') throw badRequest(`${name} cannot be empty`);
  if (/\s/.test(text)) throw badRequest(`${name} cannot contain whitespace`);
  if (/\p{Cc}/u.test(text)) throw badRequest(`${name} cannot contain control characters`);
  return text;
}

/** A segment of a path; `name` is what refusals call it. */
export function word(name: string, description: string): Parameter<string> {
  return { description, schema: WORD, parse: (text) => segment(name, text) };
}

/** Where it is absent or empty, its value is undefined. */
export function optional<T>(
  description: string,
  schema: JsonSchema,
  parse: (text: string) => T,
): Parameter<T | undefined> {
  return { description, schema, parse: (text = '') => (text === '' ? undefined : parse(text)) };
}

/** Any text where it is given. */
export function optionalText(description: string): Parameter<string | undefined> {
  return optional(description, STRING, (text) => text);
}

const STRING = { type: 'string' } as const;
/** JSON Schema of what is not empty and holds no white space or control character. */
export const WORD = { ...STRING, pattern: String.raw`^[^\s\u0000-\u001f\u007f-\u009f]+$` } as const;

export const registryName = word('registry', 'Name of a registry');

/** `namespace/name`, its slash percent-encoded, or a bare name. */
export const serverName: Parameter<string> = {
  description: 'Name of a server: `namespace%2Fname`, or `namespace/name` as two segments, or a bare name',
  schema: { ...WORD, maxLength: MAX_SERVER_NAME },
  parse: (text) => requireServerName(segment('serverName', text)),
};

/** Returns the name of a server. Fails with `registry/bad-request` where it is none. */
export function requireServerName(name: string): string {
  const fault = serverNameFault(name);
  if (fault !== undefined) throw badRequest(`invalid server name format: ${fault}`);
  return name;
}

/** Of a skill or plugin. */
export const namespaceName = word('namespace', 'Namespace, in reverse DNS form');
export const bundleName = word('name', 'Name within the namespace');

export const versionName: Parameter<string> = {
  description: 'An exact version string, or `latest`',
  schema: WORD,
  parse: (text) => {
    const version = segment('version', text);
    const fault = version === 'latest' ? undefined : versionFault(version);
    if (fault !== undefined) throw badRequest(`invalid version: ${fault}`);
    return version;
  },
};

export const cursor = optional(
  'Start after this point: `metadata.nextCursor` of the page before',
  STRING,
  decodeCursor,
);

export const limit = cappedLimit('pageSize');
export const versionsLimit = cappedLimit('versionsPageSize');

/** Asking for more than there is gives the most there is (docs/behaviour/registry.md#consumer-api). */
function cappedLimit(list: 'pageSize' | 'versionsPageSize'): Parameter<number> {
  return {
    description: 'Items per page; more than the largest page gives the largest page',
    schema: (limits) => ({ type: 'integer', minimum: 1, default: limits[list].default }),
    parse: (text = '', { [list]: size }) => {
      if (text === '') return size.default;
      const value = integerOf(text, 'Invalid');
      if (value < 1) throw badRequest('Invalid limit parameter: must be greater than zero');
      return Math.min(value, size.max);
    },
  };
}

/** Of skills and plugins: out of range is an error here and not capped. */
export const bundleLimit: Parameter<number> = {
  description: 'Items per page',
  schema: ({ bundlePageSize: { max, default: usual } }) => ({
    type: 'integer',
    minimum: 1,
    maximum: max,
    default: usual,
  }),
  parse: (text = '', { bundlePageSize: size }) => {
    if (text === '') return size.default;
    const value = integerOf(text, 'invalid');
    if (value >= 1 && value <= size.max) return value;
    throw badRequest(`invalid limit parameter: must be between 1 and ${size.max}`);
  },
};

function integerOf(text: string, invalid: 'Invalid' | 'invalid'): number {
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(`${invalid} limit parameter: must be an integer`);
  return Number(text);
}

export const search = optional(
  'Text that name, title or description contains, in any case; every character is literal',
  { ...STRING, maxLength: MAX_SEARCH_CHARACTERS },
  (text) => {
    // Characters as JSON Schema counts them.
    if (Array.from(text).length <= MAX_SEARCH_CHARACTERS) return text;
    throw badRequest(`Invalid search parameter: at most ${MAX_SEARCH_CHARACTERS} characters are allowed`);
  },
);

export const updatedSince = optional(
  'Only versions updated strictly later than this RFC 3339 date-time',
  { ...STRING, format: 'date-time' },
  (text) => {
    // An unescaped + of an offset arrives as a space.
    const instant = parseInstant(text.replace(' ', '+'));
    if (instant !== undefined) return instant;
    throw badRequest(
      'Invalid updated_since parameter: must be RFC3339 format, for example 2026-01-02T03:04:05Z',
    );
  },
);

export const versionFilter = optionalText('`latest`, or an exact version string');

const STATUSES: readonly BundleStatus[] = ['ACTIVE', 'DEPRECATED', 'ARCHIVED'];

export const bundleStatus = optional('Only items of this status, in any case', { enum: STATUSES }, (text) => {
  const status = STATUSES.find((candidate) => candidate === text.toUpperCase());
  if (status !== undefined) return status;
  throw badRequest('invalid status parameter: must be active, deprecated or archived');
});

export const bundleVersions: Parameter<string> = {
  description: '`latest`, `all`, or an exact version string',
  schema: { ...STRING, default: 'latest' },
  parse: (text = '') => (text === '' ? 'latest' : text),
};
