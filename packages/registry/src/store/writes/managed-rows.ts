import { type RawBuilder, sql } from 'kysely';
import type { Revision } from '../changes.ts';
import type { Database } from '../database.ts';
import type { EntryAddress, ManagedSource } from '../decisions.ts';
import { IS_VERSION_OF, storedVersion } from '../reads/entries.ts';
import { identityKey, identityOf, type EntryKind, type NamedRegistry, type StoredEntry } from '../rows.ts';

/** What a write of managed entries is judged by, as it stands at one revision. */
export interface ManagedRows {
  readonly revision: Revision;
  /** Undefined where there is none. */
  readonly source: ManagedSource | undefined;
  readonly entries: readonly StoredEntry[];
  /** Those of the named registries that exist. */
  readonly registries: readonly NamedRegistry[];
}

export interface Asked {
  readonly addresses: readonly EntryAddress[];
  readonly registries: readonly string[];
}

export interface ManagedRow {
  readonly what: 'state' | 'source' | 'entry' | 'registry';
  readonly kind: EntryKind;
  readonly namespace: string;
  /** Of the state: the revision. */
  readonly name: string;
  readonly claims: string;
  /** Of a registry: a source of it. */
  readonly version: string | null;
  readonly title: string | null;
  readonly description: string | null;
  readonly document: string | null;
  readonly official: string | null;
  readonly created_at: string | null;
  readonly updated_at: string | null;
}

/**
 * The revision, the managed source, every entry of it under one of the addresses with all its versions, and the registries: one statement,
 * and the same one however many are asked for. It may give other entries of these kinds, namespaces and names too. The names
 * are said of both tables of the join: PostgreSQL takes one that it has not analysed yet for empty, and walks all of it.
 */
export function managedQuery(
  { among }: Pick<Database, 'among'>,
  { addresses, registries }: Asked,
): RawBuilder<ManagedRow> {
  const distinct = (texts: readonly string[]): string[] => [...new Set(texts)];
  const kinds = distinct(addresses.map(({ kind }) => kind));
  const names = distinct(addresses.map(({ name }) => name));
  const namespaces = addresses.flatMap(({ namespace }) => namespace ?? []);
  const isWhole = namespaces.length === addresses.length;
  const named = (table: 'e' | 'v') => {
    const column = (name: string) => sql<string>`${sql.raw(`${table}.${name}`)}`;
    const inNamespaces = isWhole ? sql`and ${among(column('namespace'), distinct(namespaces))}` : sql``;
    return sql`${column('source')} = (select name from source where kind = 'managed') and ${among(column('kind'), kinds)} ${inNamespaces}
      and ${among(column('name'), names)}`;
  };
  return sql<ManagedRow>`${sql.raw(`/* prepared: read-managed${isWhole ? '' : '-bare'} */`)}
    select 'state' as what, 'server' as kind, '' as namespace, cast(revision as text) as name, '' as claims,
      null as version, null as title, null as description, null as document, null as official, null as created_at,
      null as updated_at
    from store_state
    union all
    select 'source', 'server', '', name, claims, null, null, null, null, null, null, null
    from source where kind = 'managed'
    union all
    select 'entry', e.kind, e.namespace, e.name, e.claims, v.version, v.title, v.description, v.document,
      v.official, v.created_at, v.updated_at
    from entry e left join entry_version v on ${IS_VERSION_OF} and ${named('v')}
    where ${named('e')}
    union all
    select 'registry', 'server', '', r.name, r.claims, s.source, null, null, null, null, null, null
    from registry r left join registry_source s on s.registry = r.name
    where ${among(sql<string>`r.name`, distinct(registries))}`;
}

export function managedRows(rows: readonly ManagedRow[]): ManagedRows {
  const grouped = (what: ManagedRow['what']): ManagedRow[][] => {
    const found = rows.filter((row) => row.what === what);
    return [...Map.groupBy(found, identityKey).values()];
  };
  const source = rows.find(({ what }) => what === 'source');
  return {
    revision: Number(rows.find(({ what }) => what === 'state')?.name),
    source: source === undefined ? undefined : { kind: 'managed', name: source.name, claims: source.claims },
    entries: grouped('entry').flatMap(entryOf),
    registries: grouped('registry').flatMap(registryOf),
  };
}

function entryOf(rows: readonly ManagedRow[]): StoredEntry[] {
  return rows.slice(0, 1).map((first) => ({
    ...identityOf(first),
    claims: first.claims,
    versions: rows.flatMap(({ version, document, created_at, updated_at, ...row }) =>
      version === null || document === null || created_at === null || updated_at === null
        ? []
        : storedVersion({ ...row, version, document, created_at, updated_at }),
    ),
  }));
}

function registryOf(rows: readonly ManagedRow[]): NamedRegistry[] {
  const sources = rows.flatMap(({ version }) => version ?? []);
  return rows.slice(0, 1).map(({ name, claims }) => ({ name, claims, sources }));
}
