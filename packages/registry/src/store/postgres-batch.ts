import { type Kysely, sql } from 'kysely';
import type { Revision } from './changes.ts';
import type { EntryBatch } from './entry-batch.ts';
import { CHANNEL } from './postgres-notices.ts';
import { prune } from './revisions.ts';
import type { SourceTable, Tables } from './tables.ts';

/**
 * One round trip. The row is read by a statement of its own, and what it protects by later ones: a statement that waits for
 * a lock goes on with what it had seen before.
 */
export async function beginManaged(db: Kysely<Tables>): Promise<SourceTable | undefined> {
  const { rows } = await sql<SourceTable>`begin isolation level read committed;
    select * from source where kind = 'managed' for no key update`.execute(db);
  return rows[0];
}

/**
 * One round trip and one statement, whose text is the same for any number of rows. References are checked when all of it is
 * done, and the revision's row stays locked until the commit.
 */
export async function writeBatch(db: Kysely<Tables>, batch: EntryBatch): Promise<Revision> {
  const { source, entries, versions, changed } = batch;
  const { rows } = await sql<{ revision: Revision }>`/* prepared: write-batch */
    with entries as (
      insert into entry (source, kind, namespace, name, claims)
      select ${source}::text, * from unnest(${column(entries, 'kind')}::text[], ${column(entries, 'namespace')}::text[],
        ${column(entries, 'name')}::text[], ${column(entries, 'claims')}::text[])
    ), versions as (
      insert into entry_version (source, kind, namespace, name, version, title, description, document, official, digest,
        created_at, updated_at)
      select ${source}::text, * from unnest(${column(versions, 'kind')}::text[], ${column(versions, 'namespace')}::text[],
        ${column(versions, 'name')}::text[], ${column(versions, 'version')}::text[],
        ${column(versions, 'title')}::text[], ${column(versions, 'description')}::text[],
        ${column(versions, 'document')}::text[], ${column(versions, 'official')}::text[],
        ${column(versions, 'digest')}::text[], ${column(versions, 'created_at')}::text[],
        ${column(versions, 'updated_at')}::text[])
    ), state as (
      update store_state set revision = revision + 1 returning revision
    ), log as (
      insert into change_log (revision, subject, source, kind, namespace, name)
      select state.revision, 'entry', ${source}::text, changed.* from state, unnest(${column(changed, 'kind')}::text[],
        ${column(changed, 'namespace')}::text[], ${column(changed, 'name')}::text[]) as changed
    )
    select revision, pg_notify(${CHANNEL}, revision::text) from state`.execute(db);
  const revision = rows[0]?.revision ?? 0;
  await prune(db, revision);
  return revision;
}

function column<Row, Name extends keyof Row>(rows: readonly Row[], name: Name): Row[Name][] {
  return rows.map((row) => row[name]);
}
