import { type ClaimSet, shownClaims } from '../../access/claim-set.ts';
import type { EntryIdentity, EntryKind, ListedEntry, VersionFacts } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { PageQuery, SortKey } from './paging.ts';

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
