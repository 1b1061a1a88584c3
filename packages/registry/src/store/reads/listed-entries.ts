import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import { compareBytes } from './byte-order.ts';
import { entriesOf, IS_VERSION_OF } from './entries.ts';
import type { EntryIdentity, EntryKind, ListedEntry, ListedVersion, VersionFacts } from '../rows.ts';
import type { Tables } from '../schema/tables.ts';

/** A part of a listing: what comes behind a place, at most so much of it. Absent: from the beginning, to the end. */
export interface ListedPart<Place> {
  readonly after?: Place | undefined;
  readonly limit?: number | undefined;
}

/** A place among the entries of one kind. */
export type EntryPlace = Pick<EntryIdentity, 'namespace' | 'name'>;

/** A place among versions, by what decides first. `kind` may be any text: it only has to come before or behind others. */
export interface VersionPlace extends EntryPlace {
  readonly version: string;
  readonly kind: string;
}

const HEAD = sql.raw(
  `e.kind, e.namespace, e.name, e.claims, v.version, v.title, v.description, v.created_at as "createdAt",
  v.updated_at as "updatedAt"`,
);

/** Entries of a kind without their documents, by namespace and name, with their versions in order of text. */
export async function listEntries(
  db: Kysely<Tables>,
  { source, kind }: { readonly source: string; readonly kind: EntryKind },
  { after, limit }: ListedPart<EntryPlace>,
): Promise<ListedEntry[]> {
  const behind = after && sql<SqlBool>`(namespace, name) > (${after.namespace}, ${after.name})`;
  const { rows } = await sql<ListedVersion>`select ${HEAD} from (
      select * from entry where source = ${source} and kind = ${kind} ${restOf(behind)}
      order by namespace, name ${atMost(limit)}
    ) e join entry_version v on ${IS_VERSION_OF}
    order by e.namespace, e.name, v.version`.execute(db);
  return entriesOf(rows, versionFacts);
}

/** Versions of a source without their documents, by name, version, kind and namespace. */
export async function listVersions(
  db: Kysely<Tables>,
  source: string,
  { after, limit }: ListedPart<VersionPlace>,
): Promise<ListedVersion[]> {
  const behind =
    after &&
    sql<SqlBool>`(name, version, kind, namespace) > (${after.name}, ${after.version}, ${after.kind}, ${after.namespace})`;
  const some = async (kinds: RawBuilder<SqlBool>): Promise<ListedVersion[]> => {
    const { rows } = await sql<ListedVersion>`select ${HEAD} from (
        select source, kind, namespace, name, version from entry_version
        where source = ${source} and ${kinds} ${restOf(behind)}
        order by name, version, kind, namespace ${atMost(limit)}
      ) k join entry_version v on v.source = k.source and v.kind = k.kind and v.namespace = k.namespace
        and v.name = k.name and v.version = k.version
      join entry e on e.source = k.source and e.kind = k.kind and e.namespace = k.namespace and e.name = k.name`.execute(
      db,
    );
    return rows;
  };
  // Servers, which most entries are, lie in this order: what is asked for is found without reading the others.
  const servers = await some(sql`kind = 'server' and namespace = ''`);
  const bundles = await some(sql`kind in ('skill', 'plugin')`);
  return [...servers, ...bundles].toSorted(compareVersions).slice(0, limit);
}

function restOf(condition: RawBuilder<SqlBool> | undefined): RawBuilder<unknown> {
  return condition === undefined ? sql`` : sql`and ${condition}`;
}

function atMost(limit: number | undefined): RawBuilder<unknown> {
  return limit === undefined ? sql`` : sql`limit ${limit}`;
}

function versionFacts(row: ListedVersion): VersionFacts {
  const { version, title, description, createdAt, updatedAt } = row;
  return { version, title, description, createdAt, updatedAt };
}

function compareVersions(one: ListedVersion, other: ListedVersion): number {
  return (
    compareBytes(one.name, other.name) ||
    compareBytes(one.version, other.version) ||
    compareBytes(one.kind, other.kind) ||
    compareBytes(one.namespace, other.namespace)
  );
}
