import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { type Kysely, CompiledQuery } from 'kysely';
import type { EntryIdentity, NewVersion, StoredVersion } from '../rows.ts';
import type { EntryTable, EntryVersionTable, Tables } from '../schema/tables.ts';

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

/** All rows have the same members in the same order. */
export function versionRow(
  source: string,
  { kind, namespace, name }: EntryIdentity,
  version: StoredVersion,
  digest = digestOf(version),
): EntryVersionTable {
  return {
    source,
    kind,
    namespace,
    name,
    version: version.version,
    title: storableText(version.title),
    description: storableText(version.description),
    document: version.document,
    official: version.official,
    digest,
    created_at: version.createdAt,
    updated_at: version.updatedAt,
  };
}

/** Equal digests are equal contents. */
export function digestOf({ document, official }: Pick<NewVersion, 'document' | 'official'>): string {
  return hash('sha256', `${document}\n${official ?? ''}`, 'base64url');
}

/** PostgreSQL text cannot hold U+0000. The document keeps it, as an escape; its copies are for searching. */
function storableText(text: string | null): string | null {
  return text?.replaceAll('\0', '\u{FFFD}') ?? null;
}

/** PostgreSQL takes 65,535 parameters and SQLite 32,766; our widest row has 12. */
const MAX_ROWS_AT_ONCE = 100;

/** Writes rows of the same members in the same order. Compiling takes longer than writing, so it is done once. */
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
