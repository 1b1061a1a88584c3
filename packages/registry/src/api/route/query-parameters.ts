import type { BundleStatus } from '@skep/core/catalog/bundle.ts';
import { decodeCursor, type Position } from '../../engine/cursor.ts';
import { type Instant, parseInstant } from '../../engine/instant.ts';
import { MAX_SEARCH_CHARACTERS } from '../../engine/search.ts';
import { badRequest, type Parameter } from './parameter.ts';

/** An empty parameter counts as absent. */
const given = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

export const cursor: Parameter<Position | undefined> = {
  description: 'Start after this point: `metadata.nextCursor` of the page before',
  schema: { type: 'string' },
  parse: (text) => (given(text) === undefined ? undefined : decodeCursor(text ?? '')),
};

export const limit = cappedLimit('pageSize');
export const versionsLimit = cappedLimit('versionsPageSize');

/** Asking for more than there is gives the most there is (docs/behaviour/registry.md#consumer-api). */
function cappedLimit(list: 'pageSize' | 'versionsPageSize'): Parameter<number> {
  return {
    description: 'Items per page; more than the largest page gives the largest page',
    schema: (limits) => ({ type: 'integer', minimum: 1, default: limits[list].default }),
    parse: (text, limits) => {
      if (given(text) === undefined) return limits[list].default;
      if (text === undefined || !/^[+-]?\d+$/.test(text)) {
        throw badRequest('Invalid limit parameter: must be an integer');
      }
      const value = Number(text);
      if (value < 1) throw badRequest('Invalid limit parameter: must be greater than zero');
      return Math.min(value, limits[list].max);
    },
  };
}

export const search: Parameter<string | undefined> = {
  description: 'Text that name, title or description contains, in any case; every character is literal',
  schema: { type: 'string', maxLength: MAX_SEARCH_CHARACTERS },
  parse: (text) => {
    // Characters as JSON Schema counts them.
    if (text === undefined || Array.from(text).length <= MAX_SEARCH_CHARACTERS) return given(text);
    throw badRequest(`Invalid search parameter: at most ${MAX_SEARCH_CHARACTERS} characters are allowed`);
  },
};

export const updatedSince: Parameter<Instant | undefined> = {
  description: 'Only versions updated strictly later than this RFC 3339 date-time',
  schema: { type: 'string', format: 'date-time' },
  parse: (text) => {
    if (given(text) === undefined) return undefined;
    // An unescaped + of an offset arrives as a space.
    const instant = parseInstant((text ?? '').replace(' ', '+'));
    if (instant !== undefined) return instant;
    throw badRequest(
      'Invalid updated_since parameter: must be RFC3339 format, for example 2026-01-02T03:04:05Z',
    );
  },
};

export const versionFilter: Parameter<string | undefined> = {
  description: '`latest`, or an exact version string',
  schema: { type: 'string' },
  parse: given,
};

/** Of skills and plugins: out of range is an error here and not capped. */
export const bundleLimit: Parameter<number> = {
  description: 'Items per page',
  schema: ({ bundlePageSize: bundles }) => ({
    type: 'integer',
    minimum: 1,
    maximum: bundles.max,
    default: bundles.default,
  }),
  parse: (text, { bundlePageSize: bundles }) => {
    if (given(text) === undefined) return bundles.default;
    if (text === undefined || !/^[+-]?\d+$/.test(text)) {
      throw badRequest('invalid limit parameter: must be an integer');
    }
    const value = Number(text);
    if (value < 1 || value > bundles.max) {
      throw badRequest(`invalid limit parameter: must be between 1 and ${bundles.max}`);
    }
    return value;
  },
};

const STATUSES: readonly BundleStatus[] = ['ACTIVE', 'DEPRECATED', 'ARCHIVED'];

export const bundleStatus: Parameter<BundleStatus | undefined> = {
  description: 'Only items of this status, in any case',
  schema: { enum: STATUSES },
  parse: (text) => {
    if (given(text) === undefined) return undefined;
    const status = STATUSES.find((candidate) => candidate === text?.toUpperCase());
    if (status !== undefined) return status;
    throw badRequest('invalid status parameter: must be active, deprecated or archived');
  },
};

export const bundleVersions: Parameter<string> = {
  description: '`latest`, `all`, or an exact version string',
  schema: { type: 'string', default: 'latest' },
  parse: (text) => given(text) ?? 'latest',
};
