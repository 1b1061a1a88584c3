import { setImmediate } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import { diffEntries, type EntryDiff, type VersionHead } from './diff.ts';
import { ofEntry } from './entries.ts';
import { assertHeld } from './leases.ts';
import type { StoredEntry } from './rows.ts';
import { isSynced, lockedSource, unknownSource } from './sources.ts';
import { updateStatus } from './statuses.ts';
import type { Replacement } from './store.ts';
import type { Tables } from './tables.ts';
import { versionRow } from './version-row.ts';
import type { Work } from './write.ts';

// Statements of this many rows stay far below SQLite's 32,766 and PostgreSQL's 65,535 parameters.
const ROWS_PER_STATEMENT = 200;

/** Makes a source hold what was synchronised; what stays the same is not written (specification §4.6). */
export function replacing({ source, entries, at, status, lease }: Replacement): Work<readonly StoredEntry[]> {
  return async (write) => {
    const existing = await lockedSource(write, source);
    if (existing === undefined) throw unknownSource(source);
    if (lease !== undefined) await assertHeld(write, lease);
    // The source's claims of now, not those of when the fetch began: they may have been tightened in between.
    const { claims } = existing;
    const labelled = isSynced(existing.kind) ? entries.map((entry) => ({ ...entry, claims })) : entries;
    const diff = diffEntries(await versionHeads(write.db, source), labelled, at);
    if (!isEmpty(diff)) write.record({ subject: 'source', name: source });
    await remove(write.db, source, diff);
    await insert(write.db, source, diff);
    await updateStatus(write.db, source, status);
    return diff.after;
  };
}

function isEmpty({ write, claim, removeVersions, removeEntries }: EntryDiff): boolean {
  return write.length + claim.length + removeVersions.length + removeEntries.length === 0;
}

async function versionHeads(db: Kysely<Tables>, source: string): Promise<VersionHead[]> {
  return db
    .selectFrom('entry_version as v')
    .innerJoin('entry as e', (join) =>
      join
        .onRef('e.source', '=', 'v.source')
        .onRef('e.kind', '=', 'v.kind')
        .onRef('e.namespace', '=', 'v.namespace')
        .onRef('e.name', '=', 'v.name'),
    )
    .where('v.source', '=', source)
    .select(['v.kind', 'v.namespace', 'v.name', 'v.version', 'v.digest', 'e.claims'])
    .select(['v.created_at as createdAt', 'v.updated_at as updatedAt'])
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

async function insert(db: Kysely<Tables>, source: string, diff: EntryDiff): Promise<void> {
  for (const chunk of chunks(diff.claim)) {
    await db
      .insertInto('entry')
      .values(chunk.map(({ kind, namespace, name, claims }) => ({ source, kind, namespace, name, claims })))
      .onConflict((conflict) =>
        conflict
          .columns(['source', 'kind', 'namespace', 'name'])
          .doUpdateSet((set) => ({ claims: set.ref('excluded.claims') })),
      )
      .execute();
    await othersFirst();
  }
  for (const chunk of chunks(diff.write)) {
    await db
      .insertInto('entry_version')
      .values(chunk.map((item) => versionRow(source, item)))
      .onConflict((conflict) =>
        conflict.columns(['source', 'kind', 'namespace', 'name', 'version']).doUpdateSet((set) => ({
          title: set.ref('excluded.title'),
          description: set.ref('excluded.description'),
          document: set.ref('excluded.document'),
          official: set.ref('excluded.official'),
          digest: set.ref('excluded.digest'),
          updated_at: set.ref('excluded.updated_at'),
        })),
      )
      .execute();
    await othersFirst();
  }
}

/** SQLite works in this thread: between two statements requests are answered. */
async function othersFirst(): Promise<void> {
  await setImmediate();
}

function* chunks<T>(rows: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < rows.length; at += ROWS_PER_STATEMENT) yield rows.slice(at, at + ROWS_PER_STATEMENT);
}
