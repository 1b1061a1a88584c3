import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Kysely } from 'kysely';
import type { CreationType } from '../../access/admin-scope.ts';
import type { DecideOnSource, SourceDeletionFacts } from '../decisions.ts';
import {
  gainsOtherwise,
  isSynced,
  type NamedSource,
  type SourceSettings,
  type StoredSource,
} from '../rows.ts';
import { addMissingStatus } from './statuses.ts';
import type { SourceTable, Tables } from '../schema/tables.ts';
import type { Write } from '../database.ts';

/** Ascending by name. */
export async function listSources(db: Kysely<Tables>): Promise<StoredSource[]> {
  return (await db.selectFrom('source').selectAll().orderBy('name').execute()).map(storedSource);
}

export async function readSource(db: Kysely<Tables>, name: string): Promise<StoredSource | undefined> {
  const row = await db.selectFrom('source').selectAll().where('name', '=', name).executeTakeFirst();
  return row === undefined ? undefined : storedSource(row);
}

/**
 * Creates or replaces a source with creation type API. New claims of a synced source reach its entries in the same
 * transaction. `created` tells which it was. Refuses a second managed source with `store/managed-exists`.
 */
export async function putSource(
  write: Write,
  name: string,
  settings: SourceSettings,
  decide: DecideOnSource,
): Promise<{ source: StoredSource; created: boolean }> {
  await write.lockAdministration();
  const existing = await lockedSource(write, name);
  const managed = await managedName(write.db);
  decide({ existing, managed });
  if (settings.kind === 'managed' && managed !== undefined && managed !== name) {
    throw new SkepError('store/managed-exists', { message: `the managed source is "${managed}"` });
  }
  write.record({ subject: 'source', name });
  const source = await writeSource(write, { name, ...settings }, existing ?? 'API');
  return { source, created: existing === undefined };
}

/** Takes the entries along. Fails with `store/source-unknown` or, while registries list it, `store/source-in-use`. */
export async function deleteSource(
  write: Write,
  name: string,
  decide: (facts: SourceDeletionFacts) => void,
): Promise<StoredSource> {
  await write.lockAdministration();
  const existing = await lockedSource(write, name);
  const referencedBy = await registriesOf(write.db, name);
  decide({ existing, referencedBy });
  if (existing === undefined) throw unknownSource(name);
  if (referencedBy.length > 0) {
    throw new SkepError('store/source-in-use', {
      message: `source is referenced by one or more registries: ${name} is referenced by ${referencedBy.length} registry(ies)`,
    });
  }
  write.record({ subject: 'source', name });
  await removeSource(write.db, name);
  return existing;
}

/** The row of a source that is created now (`CONFIG` or `API`) or replaces `before`, with everything that follows from it. */
export async function writeSource(
  write: Write,
  { name, kind, config, format, filter, interval, claims }: NamedSource,
  before: StoredSource | CreationType,
): Promise<StoredSource> {
  const settings = { kind, config, format, filter, sync_interval: interval, claims };
  const isNew = typeof before === 'string';
  const row: SourceTable = {
    name,
    ...settings,
    creation_type: isNew ? before : before.creationType,
    orphaned: 0,
    created_at: isNew ? write.now : before.createdAt,
    updated_at: write.now,
  };
  if (isNew) await write.db.insertInto('source').values(row).execute();
  else await write.db.updateTable('source').set(row).where('name', '=', name).execute();
  if (isNew || contentText(before) !== contentText({ kind, config, format, filter }))
    await forgetLease(write.db, name);
  if (!isNew && gainsOtherwise(before.kind, kind)) await forgetEntries(write.db, name);
  if (isSynced(kind)) await inheritClaims(write.db, name, claims);
  await addMissingStatus(write.db, { name, kind });
  return storedSource(row);
}

/** What decides about the entries that a source is read into. */
function contentText({ kind, config, format, filter }: Omit<SourceSettings, 'interval' | 'claims'>): string {
  return JSON.stringify([kind, config, format, filter]);
}

/** Entries and status go with it. */
export async function removeSource(db: Kysely<Tables>, name: string): Promise<void> {
  await db.deleteFrom('source').where('name', '=', name).execute();
  await forgetLease(db, name);
}

/** A replica that synchronises a source while it changes must not write what the source was before. */
async function forgetLease(db: Kysely<Tables>, source: string): Promise<void> {
  await db.deleteFrom('sync_lease').where('source', '=', source).execute();
}

export async function lockedSource(
  { db, locksRows }: Write,
  name: string,
): Promise<StoredSource | undefined> {
  const row = await db
    .selectFrom('source')
    .selectAll()
    .where('name', '=', name)
    .$if(locksRows, (query) => query.forUpdate())
    .executeTakeFirst();
  return row === undefined ? undefined : storedSource(row);
}

export async function registriesOf(db: Kysely<Tables>, source: string): Promise<string[]> {
  const rows = await db
    .selectFrom('registry_source')
    .select('registry')
    .where('source', '=', source)
    .orderBy('registry')
    .execute();
  return rows.map(({ registry }) => registry);
}

export function unknownSource(name: string): SkepError {
  return new SkepError('store/source-unknown', { message: `source not found: ${name}` });
}

export function storedSource(row: SourceTable): StoredSource {
  return {
    name: row.name,
    creationType: row.creation_type,
    kind: row.kind,
    config: row.config,
    format: row.format,
    filter: row.filter,
    interval: row.sync_interval,
    claims: row.claims,
    orphaned: row.orphaned === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

async function managedName(db: Kysely<Tables>): Promise<string | undefined> {
  const row = await db.selectFrom('source').select('name').where('kind', '=', 'managed').executeTakeFirst();
  return row?.name;
}

/** Claims of a synced source are those of its entries, also without new data. */
async function inheritClaims(db: Kysely<Tables>, source: string, claims: string): Promise<void> {
  await db
    .updateTable('entry')
    .set({ claims })
    .where('source', '=', source)
    .where('claims', '<>', claims)
    .execute();
}

/** What was published must not pass for synchronised content, nor the other way round. */
async function forgetEntries(db: Kysely<Tables>, source: string): Promise<void> {
  await db.deleteFrom('entry').where('source', '=', source).execute();
  await db.deleteFrom('sync_status').where('source', '=', source).execute();
}
