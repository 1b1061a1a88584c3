import type { Kysely } from 'kysely';
import { diffEntries, type EntryDiff, type VersionHead } from './diff.ts';
import { IS_VERSION_OF, ofEntry } from '../reads/entries.ts';
import { insertRows } from './entry-batch.ts';
import { assertHeld, type Lease } from './leases.ts';
import { isSynced, type NewEntry, type StoredEntry, type SyncStatus } from '../rows.ts';
import { lockedSource, unknownSource } from './sources.ts';
import { updateStatus } from './statuses.ts';
import type { Tables } from '../schema/tables.ts';
import type { Write } from '../database.ts';

export interface Replacement {
  readonly source: string;
  /** Everything the source holds now, each entry and version once. In a synchronised source its claims count, and not theirs. */
  readonly entries: readonly NewEntry[];
  /** Time of new and changed versions. */
  readonly at: string;
  /** Written together with the entries. */
  readonly status: SyncStatus;
  /** With it the replacement is refused with `store/lease-lost` when somebody else has taken the lease over. */
  readonly lease?: Lease;
}

/** Makes the source hold exactly these entries, and gives them as stored. Unchanged versions keep their times. */
export async function replaceEntries(
  write: Write,
  { source, entries, at, status, lease }: Replacement,
): Promise<readonly StoredEntry[]> {
  const existing = await lockedSource(write, source);
  if (existing === undefined) throw unknownSource(source);
  if (lease !== undefined) await assertHeld(write, lease);
  // The source's claims of now, not those of when the fetch began: they may have been tightened in between.
  const { claims } = existing;
  const labelled = isSynced(existing.kind) ? entries.map((entry) => ({ ...entry, claims })) : entries;
  const diff = await diffEntries(source, await versionHeads(write.db, source), inOrder(labelled), at);
  if (!isEmpty(diff)) {
    write.record({ subject: 'source', name: source }, { source, changed: 'all', entries: diff.after });
  }
  await remove(write.db, source, diff);
  await insert(write.db, diff);
  await updateStatus(write.db, source, status);
  return diff.after;
}

/** As the primary key sorts them, so that one page of the database is filled after the other. */
function inOrder(entries: readonly NewEntry[]): readonly NewEntry[] {
  return entries
    .map((entry) => ({ key: [entry.kind, entry.namespace, entry.name].join('\0'), entry }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ entry }) => entry);
}

function isEmpty({ write, claim, removeVersions, removeEntries }: EntryDiff): boolean {
  return write.length + claim.length + removeVersions.length + removeEntries.length === 0;
}

async function versionHeads(db: Kysely<Tables>, source: string): Promise<VersionHead[]> {
  return db
    .selectFrom('entry_version as v')
    .innerJoin('entry as e', (join) => join.on(IS_VERSION_OF))
    .where('v.source', '=', source)
    .select(['v.kind', 'v.namespace', 'v.name', 'v.version', 'v.digest', 'e.claims'])
    .select(['v.created_at', 'v.updated_at'])
    .execute();
}

async function remove(db: Kysely<Tables>, source: string, diff: EntryDiff): Promise<void> {
  for (const head of diff.removeVersions) {
    await db
      .deleteFrom('entry_version')
      .where(ofEntry(source, head))
      .where('version', '=', head.version)
      .execute();
  }
  for (const entry of diff.removeEntries) {
    await db.deleteFrom('entry').where(ofEntry(source, entry)).execute();
  }
}

async function insert(db: Kysely<Tables>, { claim, write }: EntryDiff): Promise<void> {
  await insertRows(db, claim, (rows) =>
    db
      .insertInto('entry')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['source', 'kind', 'namespace', 'name'])
          .doUpdateSet((set) => ({ claims: set.ref('excluded.claims') })),
      ),
  );
  await insertRows(db, write, (rows) =>
    db
      .insertInto('entry_version')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['source', 'kind', 'namespace', 'name', 'version']).doUpdateSet((set) => ({
          title: set.ref('excluded.title'),
          description: set.ref('excluded.description'),
          document: set.ref('excluded.document'),
          official: set.ref('excluded.official'),
          digest: set.ref('excluded.digest'),
          updated_at: set.ref('excluded.updated_at'),
        })),
      ),
  );
}
