import { sql, type RawBuilder } from 'kysely';
import type { Revision } from '../changes.ts';
import type { Database } from '../database.ts';
import type { EntryAddress, ManagedSource } from '../decisions.ts';
import { entriesOf, IS_VERSION_OF, storedVersion } from '../reads/entries.ts';
import type { NamedRegistry, StoredEntry, StoredVersion, WithEntry } from '../rows.ts';

/** What a write of managed entries is judged by, as it stands at one revision. */
export interface ManagedRows {
  readonly revision: Revision;
  /** Undefined where there is none. */
  readonly source: ManagedSource | undefined;
  readonly entries: readonly StoredEntry[];
  /** Those of the named registries that exist. */
  readonly registries: readonly NamedRegistry[];
}

type OrNull<T> = { readonly [Key in keyof T]: T[Key] | null };

/** Of the state, `name` is the revision; of a registry, `version` is a source of it. */
export interface ManagedRow extends WithEntry<OrNull<StoredVersion>> {
  readonly what: 'state' | 'source' | 'entry' | 'registry';
}

/**
 * The revision, the managed source, every entry of it under one of the addresses with all its versions, and the registries
 * that they name, and perhaps entries of like names: one statement, the same however many are asked for. The names are said
 * of both tables of the join: PostgreSQL takes one that it has not analysed yet for empty, and walks all of it.
 */
export function managedQuery(
  { among }: Pick<Database, 'among'>,
  addresses: readonly EntryAddress[],
): RawBuilder<ManagedRow> {
  const distinct = (texts: readonly string[]): string[] => [...new Set(texts)];
  const kinds = distinct(addresses.map(({ kind }) => kind));
  const names = distinct(addresses.map(({ name }) => name));
  const namespaces = addresses.flatMap(({ namespace }) => namespace ?? []);
  const registries = addresses.flatMap(({ registry }) => registry ?? []);
  const isWhole = namespaces.length === addresses.length;
  const named = (table: 'e' | 'v') => {
    const column = (name: string) => sql<string>`${sql.raw(`${table}.${name}`)}`;
    const inNamespaces = isWhole ? sql`and ${among(column('namespace'), distinct(namespaces))}` : sql``;
    return sql`${column('source')} = (select name from source where kind = 'managed') and ${among(column('kind'), kinds)} ${inNamespaces}
      and ${among(column('name'), names)}`;
  };
  return sql<ManagedRow>`${sql.raw(`/* prepared: read-managed${isWhole ? '' : '-bare'} */`)}
    select 'state' as what, 'server' as kind, '' as namespace, cast(revision as text) as name, '' as claims,
      null as version, null as title, null as description, null as document, null as official, null as "createdAt",
      null as "updatedAt"
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
  const ofWhat = Map.groupBy(rows, ({ what }) => what);
  const [source] = ofWhat.get('source') ?? [];
  return {
    revision: Number(ofWhat.get('state')?.[0]?.name),
    source: source === undefined ? undefined : { kind: 'managed', name: source.name, claims: source.claims },
    entries: entriesOf(ofWhat.get('entry') ?? [], (row) => (isVersion(row) ? storedVersion(row) : [])),
    registries: entriesOf(ofWhat.get('registry') ?? [], ({ version }) => version ?? []).map(
      ({ name, claims, versions }) => ({ name, claims, sources: versions }),
    ),
  };
}

function isVersion(row: ManagedRow): row is ManagedRow & WithEntry<StoredVersion> {
  return row.version !== null;
}

/** What is known of a work on managed entries before it is done. */
export interface PlannedWork {
  /** Which entry of the managed source it is about, and the registry it judges by: one statement reads for all of them. */
  readonly address: EntryAddress;
  /** It adds an entry that is most likely new, and reads nothing else. */
  readonly seemsNew?: boolean | undefined;
}

/**
 * What the last transaction on managed entries found, as long as this process made every commit since: enough to judge an
 * entry that is new without reading. The commit proves that it is still so, because every change takes a revision.
 */
export class KnownRows {
  #rows: ManagedRows | undefined;

  /** Undefined where something has to be read; `newest` is a revision that there is. */
  about(works: readonly PlannedWork[], newest: Revision): ManagedRows | undefined {
    const rows = this.#rows;
    if (rows === undefined || rows.revision < newest) return undefined;
    const knows = (name: string | undefined): boolean =>
      name === undefined || rows.registries.some((registry) => registry.name === name);
    return works.every(({ seemsNew, address }) => seemsNew === true && knows(address.registry))
      ? rows
      : undefined;
  }

  /** A transaction that began with these rows has changed entries alone and left this revision. */
  left(
    before: ManagedRows,
    { revision, changed }: { readonly revision: Revision; readonly changed: boolean },
  ): void {
    const next = changed ? before.revision + 1 : before.revision;
    const known = this.#rows?.revision === before.revision ? this.#rows.registries : [];
    const read = new Set(before.registries.map(({ name }) => name));
    const registries = [...before.registries, ...known.filter(({ name }) => !read.has(name))];
    // In between somebody else has committed, who knows what.
    this.#rows = revision === next ? { revision, source: before.source, entries: [], registries } : undefined;
  }
}
