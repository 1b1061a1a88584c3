import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import type { Revision } from './changes.ts';
import { type EntryBatch, insertBatch } from './entry-batch.ts';
import { recordChanges } from './revisions.ts';
import type { Tables } from './tables.ts';

/** See the port: the texts travel as one. */
export function among(column: RawBuilder<string>, texts: readonly string[]): RawBuilder<SqlBool> {
  return sql`${column} in (select value from json_each(${JSON.stringify(texts)}))`;
}

/** The batch and its revision, one statement after the other: for a database in this process. */
export async function commitBatch(db: Kysely<Tables>, batch: EntryBatch): Promise<Revision> {
  await insertBatch(db, batch);
  const { source, changed } = batch;
  const revision = await recordChanges(
    db,
    changed.map((entry) => ({ subject: 'entry', entry: { source, ...entry } })),
  );
  await sql`commit`.execute(db);
  return revision;
}
