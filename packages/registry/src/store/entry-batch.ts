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

export async function insertBatch(
  db: Kysely<Tables>,
  { entries, versions }: Pick<EntryBatch, 'entries' | 'versions'>,
): Promise<void> {
  if (entries.length > 0) await db.insertInto('entry').values(entries).execute();
  if (versions.length > 0) await db.insertInto('entry_version').values(versions).execute();
}
