import { compareBytes } from '../../store/reads/byte-order.ts';
import { badRequest, optional } from '../route/parameter.ts';

/** Texts by which a listing is ordered, the most important first. */
export type SortKey = readonly string[];

export interface Page<T> {
  readonly items: readonly T[];
  /** Absent on the last page. */
  readonly nextCursor?: string;
}

/** What a caller asks for. */
export interface PageQuery {
  readonly limit: number | undefined;
  readonly cursor: SortKey | undefined;
}

const MAX_LIMIT = 1000;
const MAX_CURSOR = 8192;

/** Absent means everything at once, which is what clients without paging expect. */
export const pageLimit = optional(
  `Rows per page; more than ${MAX_LIMIT} gives ${MAX_LIMIT}, absent gives all rows`,
  { type: 'integer', minimum: 1 },
  (text) => {
    const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    if (limit < 1) throw badRequest('Invalid limit parameter: must be an integer greater than zero');
    return Math.min(limit, MAX_LIMIT);
  },
);

export const pageCursor = optional(
  'Start after this row: `nextCursor` of the page before',
  { type: 'string' },
  decodeCursor,
);

/** The rows after a cursor, at most `limit` of them. `rows` ascend by `keyOf`, which no two rows share. */
export function pageOf<T>(
  rows: readonly T[],
  keyOf: (row: T) => SortKey,
  { limit, cursor }: PageQuery,
): Page<T> {
  const rest = cursor === undefined ? rows : rows.filter((row) => compareKeys(keyOf(row), cursor) > 0);
  if (limit === undefined || rest.length <= limit) return { items: rest };
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  return last === undefined ? { items } : { items, nextCursor: encodeCursor(keyOf(last)) };
}

/** Bytewise, as everything the registry orders. */
export function compareKeys(left: SortKey, right: SortKey): number {
  for (const [index, text] of left.entries()) {
    const order = compareBytes(text, right[index] ?? '');
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function encodeCursor(key: SortKey): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url');
}

function decodeCursor(text: string): SortKey {
  try {
    const key: unknown =
      text.length > MAX_CURSOR ? null : JSON.parse(Buffer.from(text, 'base64url').toString());
    // PostgreSQL takes no text with this character.
    const isText = (part: unknown): part is string => typeof part === 'string' && !part.includes('\0');
    if (Array.isArray(key) && key.length > 0 && key.every(isText)) return key;
  } catch {
    // Not ours: answered like every other text that is no cursor.
  }
  throw badRequest('invalid cursor');
}
