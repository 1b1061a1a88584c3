import { setImmediate } from 'node:timers/promises';
import { type Kysely, CompiledQuery } from 'kysely';
import type { EntryIdentity } from '../rows.ts';
import type { EntryTable, EntryVersionTable, Tables } from '../schema/tables.ts';
import type { VersionWrite } from './diff.ts';

/** What publishes that share a transaction add to the managed source, and which entries the transaction changed. */
export interface EntryBatch {
  readonly source: string;
  readonly entries: readonly EntryTable[];
  readonly versions: readonly EntryVersionTable[];
  readonly changed: readonly EntryIdentity[];
}

/** SQLite takes 32,766 parameters, and a row has 12. */
const MAX_BATCH_ROWS = 2_000;

export async function insertBatch(
  db: Kysely<Tables>,
  { entries, versions }: Pick<EntryBatch, 'entries' | 'versions'>,
): Promise<void> {
  if (entries.length > 0) await db.insertInto('entry').values(entries).execute();
  for (let at = 0; at < versions.length; at += MAX_BATCH_ROWS) {
    const some = versions.slice(at, at + MAX_BATCH_ROWS);
    await db.insertInto('entry_version').values(some).execute();
  }
}

export function versionRow(source: string, { content, ...row }: VersionWrite): EntryVersionTable {
  return {
    source,
    kind: row.kind,
    namespace: row.namespace,
    name: row.name,
    version: content.version,
    title: storable(content.title),
    description: storable(content.description),
    document: content.document,
    official: content.official,
    digest: row.digest,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  };
}

/**
 * PostgreSQL text cannot hold U+0000. Title and description are copies to search in; the document, where the character is
 * written as an escape, keeps it.
 */
function storable(text: string | null): string | null {
  return text?.replaceAll('\0', '\u{FFFD}') ?? null;
}

/** PostgreSQL takes 65,535 parameters and SQLite 32,766; our widest row has 12. */
const MAX_ROWS_AT_ONCE = 100;

/**
 * Writes any number of rows, all with the same members in the same order. The statement is compiled once and not for each
 * chunk of rows, which takes longer than the database needs for them.
 */
export async function insertRows<Row extends object, Tables>(
  db: Kysely<Tables>,
  rows: readonly Row[],
  statement: (rows: readonly Row[]) => { compile(): CompiledQuery },
): Promise<void> {
  let sql = '';
  let size = 0;
  for (let at = 0; at < rows.length; at += MAX_ROWS_AT_ONCE) {
    const chunk = rows.slice(at, at + MAX_ROWS_AT_ONCE);
    if (chunk.length !== size) ({ sql } = statement(chunk).compile());
    size = chunk.length;
    await db.executeQuery(CompiledQuery.raw(sql, chunk.flatMap(Object.values)));
    // SQLite works in this thread: between two statements requests are answered.
    await setImmediate();
  }
}
