import type { QueryConfig, QueryResult } from 'pg';
import { CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Revision } from '../changes.ts';
import type { EntryBatch } from '../writes/entry-batch.ts';
import { CHANNEL } from './notices.ts';
import { AND_AT_ONCE } from './prepared-pool.ts';
import { KEPT_REVISIONS, PRUNE_EVERY } from '../writes/revisions.ts';
import type { Tables } from '../schema/tables.ts';

/** One round trip, in two statements: one that waits for a lock goes on with what it had seen before. */
export async function beginManaged<Row>(db: Kysely<Tables>, read: RawBuilder<Row>): Promise<readonly Row[]> {
  const { rows } = await sql<Row>`begin isolation level read committed;
    select from source where kind = 'managed' for no key update ${sql.raw(AND_AT_ONCE)} ${read}`.execute(db);
  return rows;
}

/** One round trip: the batch and the commit, which takes everything back where the batch failed. */
export async function commitBatch(db: Kysely<Tables>, batch: EntryBatch): Promise<Revision> {
  const { rows } = await db.executeQuery<BatchRow>(
    CompiledQuery.raw(`${WRITE} ${AND_AT_ONCE} commit`, values(batch, null)),
  );
  return rows[0]?.revision ?? 0;
}

/** See the port. The managed source stays locked by it as by every other write of entries. */
export async function commitAt(
  send: SendBatch,
  batch: EntryBatch,
  current: Revision,
): Promise<Revision | undefined> {
  const { rows } = await send(
    entryStatement(batch, current) ?? { name: 'write-batch', text: WRITE, values: values(batch, current) },
  );
  return rows[0]?.revision;
}

export interface BatchRow {
  readonly revision: Revision;
}

export type SendBatch = (statement: QueryConfig) => Promise<QueryResult<BatchRow>>;

/** Selects of what is written, each of a row of the new revision called `state`. */
interface Rows {
  readonly entries: string;
  readonly versions: string;
  readonly changed: string;
}

/**
 * One statement that writes the rows. Everything hangs on the row of the revision: a statement that waited for it reads it
 * again as it is then, and leaves it alone where somebody was faster. References are checked when all of it is done, and
 * the revision's row stays locked until the commit. Its first parameters are the source and the revision before, if known.
 */
function writing({ entries, versions, changed }: Rows, { prunes }: { readonly prunes: boolean }): string {
  const changesFrom = `, changes_from = case
      when (revision + 1) % ${PRUNE_EVERY} = 0
      then greatest(changes_from, revision + 1 - ${KEPT_REVISIONS}) else changes_from end`;
  const pruned = `, pruned as (
    delete from change_log using state
    where state.revision % ${PRUNE_EVERY} = 0 and change_log.revision <= state.revision - ${KEPT_REVISIONS}
  )`;
  return `with held as (
    select name from source where kind = 'managed' for no key update
  ), state as (
    update store_state set revision = revision + 1${prunes ? changesFrom : ''}
    from held where held.name = $1 and ($2::bigint is null or revision = $2)
    returning revision
  ), entries as (
    insert into entry (source, kind, namespace, name, claims)
    ${entries}
  ), versions as (
    insert into entry_version (source, kind, namespace, name, version, title, description, document, official, digest,
      created_at, updated_at)
    ${versions}
  ), log as (
    insert into change_log (revision, subject, source, kind, namespace, name)
    ${changed}
  )${prunes ? pruned : ''}
  select revision, pg_notify('${CHANNEL}', revision::text) from state`;
}

/** The same text for any number of rows. */
const WRITE = `/* prepared: write-batch */ ${writing(
  {
    entries: `select $1, entry.* from state, unnest($3::text[], $4::text[], $5::text[], $6::text[]) as entry`,
    versions: `select $1, version.* from state, unnest($7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
      $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[]) as version`,
    changed: `select state.revision, 'entry', $1, changed.* from state,
      unnest($18::text[], $19::text[], $20::text[]) as changed`,
  },
  { prunes: true },
)}`;

/** What one publisher at a time needs: a third less work for the server, which makes a table of each array. */
const WRITE_ENTRY = `/* prepared: write-entry */ ${writing(
  {
    entries: `select $1, $3, $4, $5, $6 from state`,
    versions: `select $1, $3, $4, $5, $7, $8, $9, $10, $11, $12, $13, $14 from state`,
    changed: `select revision, 'entry', $1, $3, $4, $5 from state`,
  },
  { prunes: false },
)}`;

/** For a new entry with one version; undefined where there is more to do, as when the record is to be shortened. */
function entryStatement(batch: EntryBatch, current: Revision): QueryConfig | undefined {
  const { source, entries, versions, changed } = batch;
  const [entry] = entries;
  const [version] = versions;
  const isSingle = [entries, versions, changed].every(({ length }) => length === 1);
  if (entry === undefined || version === undefined || !isSingle) return undefined;
  if ((current + 1) % PRUNE_EVERY === 0) return undefined;
  const { kind, namespace, name, claims } = entry;
  const { title, description, document, official, digest, created_at, updated_at } = version;
  const identified = [source, current, kind, namespace, name, claims, version.version];
  const content = [title, description, document, official, digest, created_at, updated_at];
  return { name: 'write-entry', text: WRITE_ENTRY, values: [...identified, ...content] };
}

/** The parameters of `WRITE`. */
function values({ source, entries, versions, changed }: EntryBatch, current: Revision | null): unknown[] {
  return [
    source,
    current,
    ...columns(entries, ['kind', 'namespace', 'name', 'claims']),
    ...columns(versions, ['kind', 'namespace', 'name', 'version', 'title', 'description', 'document']),
    ...columns(versions, ['official', 'digest', 'created_at', 'updated_at']),
    ...columns(changed, ['kind', 'namespace', 'name']),
  ];
}

function columns<Row>(rows: readonly Row[], names: readonly (keyof Row)[]): unknown[][] {
  return names.map((name) => rows.map((row) => row[name]));
}
