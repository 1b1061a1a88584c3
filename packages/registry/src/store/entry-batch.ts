import type { Kysely } from 'kysely';
import type { EntryIdentity } from './rows.ts';
import type { EntryTable, EntryVersionTable, Tables } from './tables.ts';

/** What publishes that share a transaction add to the managed source, and which entries the transaction changed. */
export interface EntryBatch {
  readonly source: string;
  readonly entries: readonly EntryTable[];
  readonly versions: readonly EntryVersionTable[];
  readonly changed: readonly EntryIdentity[];
}

/** SQLite takes 32,766 parameters, and a row has 12. */
const ROWS_PER_STATEMENT = 2_000;

export async function insertBatch(
  db: Kysely<Tables>,
  { entries, versions }: Pick<EntryBatch, 'entries' | 'versions'>,
): Promise<void> {
  if (entries.length > 0) await db.insertInto('entry').values(entries).execute();
  for (let at = 0; at < versions.length; at += ROWS_PER_STATEMENT) {
    const some = versions.slice(at, at + ROWS_PER_STATEMENT);
    await db.insertInto('entry_version').values(some).execute();
  }
}
