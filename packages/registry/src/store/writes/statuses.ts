import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Kysely } from 'kysely';
import { isSynced, type NamedSource, type SyncStatus } from '../rows.ts';
import type { Lease } from './leases.ts';
import type { SyncStatusTable, Tables } from '../schema/tables.ts';
import type { Moment } from '../database.ts';

/** A source that nobody has synchronised yet; of other kinds, one that nobody ever will. */
export function firstStatus(kind: NamedSource['kind']): SyncStatus {
  const synced = isSynced(kind);
  return {
    phase: synced ? 'failed' : 'complete',
    message: synced ? 'No previous sync status found' : `Non-synced source (type: ${kind})`,
    lastAttempt: null,
    lastSync: null,
    lastSuccess: null,
    nextSync: null,
    attemptCount: 0,
    changed: false,
    counts: { server: 0, skill: 0, plugin: 0 },
    contentHash: null,
    filterHash: null,
    report: null,
  };
}

export async function readStatus(db: Kysely<Tables>, source: string): Promise<SyncStatus | undefined> {
  const row = await db.selectFrom('sync_status').selectAll().where('source', '=', source).executeTakeFirst();
  return row === undefined ? undefined : storedStatus(row);
}

/** By source name. */
export async function readStatuses(db: Kysely<Tables>): Promise<Map<string, SyncStatus>> {
  const rows = await db.selectFrom('sync_status').selectAll().orderBy('source').execute();
  return new Map(rows.map((row) => [row.source, storedStatus(row)]));
}

export async function updateStatus(db: Kysely<Tables>, source: string, status: SyncStatus): Promise<void> {
  await statusUpdate(db, source, status).execute();
}

function statusUpdate(db: Kysely<Tables>, source: string, status: SyncStatus) {
  return db.updateTable('sync_status').set(statusRow(source, status)).where('source', '=', source);
}

/** One statement: a source that is gone is left alone, and a lease that is not held any more fails it (`store/lease-lost`). */
export async function writeStatus(
  { db }: Moment,
  source: string,
  status: SyncStatus,
  lease?: Lease,
): Promise<void> {
  if (lease === undefined) return updateStatus(db, source, status);
  const { numUpdatedRows } = await statusUpdate(db, source, status)
    .where((where) =>
      where.exists(
        where
          .selectFrom('sync_lease')
          .select('owner')
          .where((its) => its.and({ source, owner: lease.owner })),
      ),
    )
    .executeTakeFirst();
  if (numUpdatedRows === 0n) throw new SkepError('store/lease-lost');
}

export async function addMissingStatus(
  db: Kysely<Tables>,
  { name, kind }: Pick<NamedSource, 'name' | 'kind'>,
): Promise<void> {
  await db
    .insertInto('sync_status')
    .values(statusRow(name, firstStatus(kind)))
    .onConflict((conflict) => conflict.column('source').doNothing())
    .execute();
}

function statusRow(source: string, status: SyncStatus): SyncStatusTable {
  return {
    source,
    phase: status.phase,
    message: status.message.replaceAll('\0', '\u{FFFD}'),
    last_attempt: status.lastAttempt,
    last_sync: status.lastSync,
    last_success: status.lastSuccess,
    next_sync: status.nextSync,
    attempt_count: status.attemptCount,
    changed: status.changed ? 1 : 0,
    servers: status.counts.server,
    skills: status.counts.skill,
    plugins: status.counts.plugin,
    content_hash: status.contentHash,
    filter_hash: status.filterHash,
    report: status.report,
  };
}

function storedStatus(row: SyncStatusTable): SyncStatus {
  return {
    phase: row.phase,
    message: row.message,
    lastAttempt: row.last_attempt,
    lastSync: row.last_sync,
    lastSuccess: row.last_success,
    nextSync: row.next_sync,
    attemptCount: row.attempt_count,
    changed: row.changed === 1,
    counts: { server: row.servers, skill: row.skills, plugin: row.plugins },
    contentHash: row.content_hash,
    filterHash: row.filter_hash,
    report: row.report,
  };
}
