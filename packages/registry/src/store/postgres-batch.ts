import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Revision } from './changes.ts';
import type { EntryBatch } from './entry-batch.ts';
import { CHANNEL } from './postgres-notices.ts';
import { AND_AT_ONCE } from './prepared-pool.ts';
import { KEPT_REVISIONS, PRUNE_EVERY } from './revisions.ts';
import type { Tables } from './tables.ts';

/**
 * One round trip. What is read comes from a statement of its own: one that waits for a lock goes on with what it had seen
 * before.
 */
export async function beginManaged<Row>(db: Kysely<Tables>, read: RawBuilder<Row>): Promise<readonly Row[]> {
  const { rows } = await sql<Row>`begin isolation level read committed;
    select from source where kind = 'managed' for no key update ${sql.raw(AND_AT_ONCE)} ${read}`.execute(db);
  return rows;
}

/**
 * One round trip and one statement, whose text is the same for any number of rows, and the commit, which takes everything
 * back where the statement failed. References are checked when all of it is done, and the revision's row stays locked until
 * the commit.
 */
export async function commitBatch(db: Kysely<Tables>, batch: EntryBatch): Promise<Revision> {
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
      update store_state set revision = revision + 1, changes_from = case
        when (revision + 1) % ${sql.lit(PRUNE_EVERY)} = 0
        then greatest(changes_from, revision + 1 - ${sql.lit(KEPT_REVISIONS)}) else changes_from end
      returning revision
    ), pruned as (
      delete from change_log using state
      where state.revision % ${sql.lit(PRUNE_EVERY)} = 0
        and change_log.revision <= state.revision - ${sql.lit(KEPT_REVISIONS)}
    ), log as (
      insert into change_log (revision, subject, source, kind, namespace, name)
      select state.revision, 'entry', ${source}::text, changed.* from state, unnest(${column(changed, 'kind')}::text[],
        ${column(changed, 'namespace')}::text[], ${column(changed, 'name')}::text[]) as changed
    )
    select revision, pg_notify(${CHANNEL}, revision::text) from state
    ${sql.raw(AND_AT_ONCE)} commit`.execute(db);
  return rows[0]?.revision ?? 0;
}

function column<Row, Name extends keyof Row>(rows: readonly Row[], name: Name): Row[Name][] {
  return rows.map((row) => row[name]);
}
