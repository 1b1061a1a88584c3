import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { shownClaims, type ClaimSet } from '../../access/claim-set.ts';
import { compareBytes } from '../../store/reads/byte-order.ts';
import type { EntryIdentity, EntryKind, ListedEntry, VersionFacts } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
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
  const key = text.length > MAX_CURSOR ? undefined : parsedJson(Buffer.from(text, 'base64url').toString());
  // PostgreSQL takes no text with this character.
  const isText = (part: unknown): part is string => typeof part === 'string' && !part.includes('\0');
  if (Array.isArray(key) && key.length > 0 && key.every(isText)) return key;
  throw badRequest('invalid cursor');
}

type EntryType = 'MCP' | 'SKILL' | 'PLUGIN';

const TYPES: Readonly<Record<EntryKind, EntryType>> = { server: 'MCP', plugin: 'PLUGIN', skill: 'SKILL' };
/** In the order of their types. */
const KINDS = ['server', 'plugin', 'skill'] as const;

/** What the entries listings say about an entry. Members without a value are undefined, which JSON leaves out. */
export function entryMembers({
  kind,
  namespace,
  name,
  claims,
}: EntryIdentity & { readonly claims: ClaimSet }) {
  return { entryType: TYPES[kind], namespace: namespace || undefined, name, claims: shownClaims(claims) };
}

export function versionMembers({ version, title, description, createdAt, updatedAt }: VersionFacts) {
  const texts = { title: title ?? undefined, description: description ?? undefined };
  return { version, ...texts, createdAt, updatedAt };
}

/** Type, then namespace, then name. */
export function entryKey({ kind, namespace, name }: EntryIdentity): SortKey {
  return [TYPES[kind], namespace, name];
}

/** Entries of a source behind the cursor: one more than the page takes, which tells that there is another page. */
export async function entriesAfter(
  store: Pick<Store, 'listEntries'>,
  source: string,
  { limit, cursor }: PageQuery,
): Promise<ListedEntry[]> {
  const found: ListedEntry[] = [];
  const [type = '', namespace = '', name = ''] = cursor ?? [];
  for (const kind of KINDS) {
    const left = limit === undefined ? undefined : limit + 1 - found.length;
    if (left === 0 || TYPES[kind] < type) continue;
    const after = TYPES[kind] === type ? { namespace, name } : undefined;
    found.push(...(await store.listEntries({ source, kind }, { after, limit: left })));
  }
  return found;
}
