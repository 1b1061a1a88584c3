import { type ExpressionBuilder, type Expression, type Kysely, sql, type SqlBool } from 'kysely';
import type { Database } from '../database.ts';
import {
  identityKey,
  identityOf,
  type EntryIdentity,
  type StoredEntry,
  type StoredVersion,
  type WithEntry,
} from '../rows.ts';
import type { EntryTable, EntryVersionTable, Tables } from '../schema/tables.ts';

/** Entries that one statement asks for by name. */
const NAMES_PER_STATEMENT = 200;

type Readable = Pick<Database, 'reader' | 'eachRow'>;

/** Ascending by kind, namespace, name; versions ascending as text. All in bytewise order. */
export async function readEntries(database: Readable, source: string): Promise<StoredEntry[]> {
  const entries: StoredEntry[] = [];
  await visitEntries(database, source, (entry) => entries.push(entry));
  return entries;
}

/** Calls with the same entries in the same order, one at a time. The callback must not ask the store for anything. */
export async function visitEntries(
  { reader, eachRow }: Readable,
  source: string,
  visit: (entry: StoredEntry) => void,
): Promise<void> {
  let rows: WithEntry<StoredVersion>[] = [];
  const end = (): void => entryOf(rows, storedVersion).forEach(visit);
  await eachRow(versionRows(reader, source), (row) => {
    const [before = row] = rows;
    if (before.name === row.name && before.namespace === row.namespace && before.kind === row.kind) {
      rows.push(row);
    } else {
      end();
      rows = [row];
    }
  });
  end();
}

/** Ordered by the columns of the table that SQLite walks: it sorts whole documents when they are named after the other. */
export function versionRows(db: Kysely<Tables>, source: string) {
  return db
    .selectFrom('entry as e')
    .innerJoin('entry_version as v', (join) => join.on(IS_VERSION_OF))
    .where('e.source', '=', source)
    .select(['e.kind', 'e.namespace', 'e.name', 'e.claims'])
    .select(['v.version', 'v.title', 'v.description', 'v.document', 'v.official'])
    .select(['v.created_at as createdAt', 'v.updated_at as updatedAt'])
    .orderBy('v.kind')
    .orderBy('v.namespace')
    .orderBy('v.name')
    .orderBy('v.version');
}

/** Those of the entries that exist, in the same order: what a replica reads after publishes. */
export async function readSomeEntries(
  db: Kysely<Tables>,
  source: string,
  entries: readonly EntryIdentity[],
): Promise<StoredEntry[]> {
  const found: StoredEntry[] = [];
  for (let at = 0; at < entries.length; at += NAMES_PER_STATEMENT) {
    const some = entries.slice(at, at + NAMES_PER_STATEMENT);
    const wanted = new Set(some.map(identityKey));
    const rows = await versionRows(db, source)
      .where('v.source', '=', source)
      .where(entriesNamed(some, 'e'))
      .where(entriesNamed(some, 'v'))
      .execute();
    const asked = rows.filter((row) => wanted.has(identityKey(row)));
    found.push(...entriesOf(asked, storedVersion));
  }
  return found;
}

/**
 * Every entry of one of these names, and perhaps others of their kinds and namespaces: a condition that indexes serve. Ask
 * it of both tables of a join: PostgreSQL takes a table that it has not analysed yet for empty, and walks all of it.
 */
function entriesNamed(entries: readonly EntryIdentity[], table: 'e' | 'v') {
  const distinct = <Column extends keyof EntryIdentity>(column: Column): EntryIdentity[Column][] => [
    ...new Set(entries.map((entry) => entry[column])),
  ];
  return (where: ExpressionBuilder<Joined, 'e' | 'v'>): Expression<SqlBool> =>
    where.and([
      where(`${table}.kind`, 'in', distinct('kind')),
      where(`${table}.name`, 'in', distinct('name')),
      where(`${table}.namespace`, 'in', distinct('namespace')),
    ]);
}

/** Joins versions `v` to their entries `e`. */
export const IS_VERSION_OF = sql<SqlBool>`v.source = e.source and v.kind = e.kind and v.namespace = e.namespace
  and v.name = e.name`;

type Joined = Tables & { e: EntryTable; v: EntryVersionTable };

type VersionOf<Row, Version> = (row: Row) => Version | readonly Version[];

/** Makes entries of rows, in the order of the first of each. */
export function entriesOf<Row extends WithEntry<object>, Version>(
  rows: readonly Row[],
  versionOf: VersionOf<Row, Version>,
) {
  return [...Map.groupBy(rows, identityKey).values()].flatMap((own) => entryOf(own, versionOf));
}

/** The entry that all of the rows are of; none where there are no rows. */
function entryOf<Row extends WithEntry<object>, Version>(
  rows: readonly Row[],
  versionOf: VersionOf<Row, Version>,
) {
  const versions = rows.flatMap(versionOf);
  return rows.slice(0, 1).map((row) => ({ ...identityOf(row), claims: row.claims, versions }));
}

export function storedVersion(row: StoredVersion): StoredVersion {
  const { version, title, description, document, official, createdAt, updatedAt } = row;
  return { version, title, description, document, official, createdAt, updatedAt };
}

export const ofEntry =
  (source: string, { kind, namespace, name }: EntryIdentity) =>
  (where: ExpressionBuilder<Tables, 'entry' | 'entry_version'>): Expression<SqlBool> =>
    where.and({ source, kind, namespace, name });
