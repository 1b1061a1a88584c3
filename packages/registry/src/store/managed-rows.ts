import { type Kysely, sql } from 'kysely';
import type { Database } from './database.ts';
import type { EntryAddress } from './decisions.ts';
import { storedVersion } from './entries.ts';
import { identityKey, identityOf } from './entry-identity.ts';
import type { EntryKind, NamedRegistry, StoredEntry } from './rows.ts';
import type { Tables } from './tables.ts';

/** What a write of managed entries is judged by, as it stands. */
export interface ManagedRows {
  readonly entries: readonly StoredEntry[];
  /** Those of the named registries that exist. */
  readonly registries: readonly NamedRegistry[];
}

interface Asked {
  readonly source: string;
  readonly addresses: readonly EntryAddress[];
  readonly registries: readonly string[];
}

interface Row {
  readonly what: 'entry' | 'registry';
  readonly kind: EntryKind;
  readonly namespace: string;
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
 * Every entry under one of the addresses, with all its versions, and the registries: one statement, and the same one however
 * many are asked for. It may give other entries of these kinds, namespaces and names too. The names are said of both tables
 * of the join: PostgreSQL takes one that it has not analysed yet for empty, and walks all of it.
 */
export async function readManaged(
  db: Kysely<Tables>,
  { among }: Pick<Database, 'among'>,
  { source, addresses, registries }: Asked,
): Promise<ManagedRows> {
  const distinct = (texts: readonly string[]): string[] => [...new Set(texts)];
  const kinds = distinct(addresses.map(({ kind }) => kind));
  const names = distinct(addresses.map(({ name }) => name));
  const namespaces = addresses.flatMap(({ namespace }) => namespace ?? []);
  const isWhole = namespaces.length === addresses.length;
  const named = (table: 'e' | 'v') => {
    const column = (name: string) => sql<string>`${sql.raw(`${table}.${name}`)}`;
    const inNamespaces = isWhole ? sql`and ${among(column('namespace'), distinct(namespaces))}` : sql``;
    return sql`${column('source')} = ${source} and ${among(column('kind'), kinds)} ${inNamespaces}
      and ${among(column('name'), names)}`;
  };
  const { rows } = await sql<Row>`${sql.raw(`/* prepared: read-managed${isWhole ? '' : '-bare'} */`)}
    select 'entry' as what, e.kind, e.namespace, e.name, e.claims, v.version, v.title, v.description, v.document,
      v.official, v.created_at, v.updated_at
    from entry e left join entry_version v on v.source = e.source and v.kind = e.kind and v.namespace = e.namespace
      and v.name = e.name and ${named('v')}
    where ${named('e')}
    union all
    select 'registry', 'server', '', r.name, r.claims, s.source, null, null, null, null, null, null
    from registry r left join registry_source s on s.registry = r.name
    where ${among(sql<string>`r.name`, distinct(registries))}`.execute(db);
  const ofKind = (what: Row['what']): Row[][] => [
    ...Map.groupBy(
      rows.filter((row) => row.what === what),
      identityKey,
    ).values(),
  ];
  return { entries: ofKind('entry').flatMap(entryOf), registries: ofKind('registry').flatMap(registryOf) };
}

function entryOf(rows: readonly Row[]): StoredEntry[] {
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

function registryOf(rows: readonly Row[]): NamedRegistry[] {
  const sources = rows.flatMap(({ version }) => version ?? []);
  return rows.slice(0, 1).map(({ name, claims }) => ({ name, claims, sources }));
}
