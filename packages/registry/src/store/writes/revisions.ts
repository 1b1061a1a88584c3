import type { Kysely } from 'kysely';
import type { Changes, Revision } from '../changes.ts';
import type { EntryKind } from '../rows.ts';
import type { ChangeLogTable, Tables } from '../schema/tables.ts';
import type { Change } from '../database.ts';

/** Revisions that the record reaches back. A replica that was away for longer reads everything again. */
export const KEPT_REVISIONS = 10_000;
/** The record is shortened every so many revisions. */
export const PRUNE_EVERY = 1_000;

export async function readRevision(db: Kysely<Tables>): Promise<Revision> {
  const { revision } = await db.selectFrom('store_state').select('revision').executeTakeFirstOrThrow();
  return revision;
}

/**
 * Gives the transaction the next revision and records what it changed. From here to the commit no other transaction gets
 * one, so revisions become visible in their order and without gaps: this comes last in every transaction.
 */
export async function recordChanges(db: Kysely<Tables>, changes: readonly Change[]): Promise<Revision> {
  if (changes.length === 0) return readRevision(db);
  const { revision } = await db
    .updateTable('store_state')
    .set((set) => ({ revision: set('revision', '+', 1) }))
    .returning('revision')
    .executeTakeFirstOrThrow();
  const rows = distinct(changes.map((change) => logRow(revision, change)));
  await db.insertInto('change_log').values(rows).execute();
  await prune(db, revision);
  return revision;
}

/** What was committed after `since` (0 is before everything), from one statement and so from one moment. */
export async function changesSince(db: Kysely<Tables>, since: Revision): Promise<Changes> {
  const rows = await db
    .selectFrom('store_state as s')
    .leftJoin('change_log as c', (join) => join.on('c.revision', '>', since))
    .select(['s.revision as newest', 's.changes_from'])
    .select(['c.subject', 'c.source', 'c.kind', 'c.namespace', 'c.name'])
    .orderBy('c.revision')
    .execute();
  const revision = rows[0]?.newest ?? 0;
  const from = rows[0]?.changes_from ?? 0;
  // Newer than the store: it was put back from a copy.
  if (since < from || since > revision) return { kind: 'everything', revision };
  const named = (subject: string): string[] => [
    ...new Set(rows.flatMap((row) => (row.subject === subject ? (row.name ?? []) : []))),
  ];
  const sources = named('source');
  const entries = rows.flatMap(({ subject, source, kind, namespace, name }) =>
    subject === 'entry' && source !== null && namespace !== null && name !== null && isKind(kind)
      ? [{ source, kind, namespace, name }]
      : [],
  );
  return {
    kind: 'some',
    revision,
    sources,
    registries: named('registry'),
    entries: distinct(entries.filter(({ source }) => !sources.includes(source))),
  };
}

/** Shortens the record, now and then. */
async function prune(db: Kysely<Tables>, revision: Revision): Promise<void> {
  const before = revision - KEPT_REVISIONS;
  if (revision % PRUNE_EVERY !== 0 || before <= 0) return;
  await db.deleteFrom('change_log').where('revision', '<=', before).execute();
  await db
    .updateTable('store_state')
    .set({ changes_from: before })
    .where('changes_from', '<', before)
    .execute();
}

function logRow(
  revision: Revision,
  { subject, source = '', kind = '', namespace = '', name }: Change,
): ChangeLogTable {
  return { revision, subject, source, kind, namespace, name };
}

function distinct<T>(items: readonly T[]): T[] {
  return [...new Map(items.map((item) => [JSON.stringify(item), item])).values()];
}

function isKind(kind: string | null): kind is EntryKind {
  return kind === 'server' || kind === 'skill' || kind === 'plugin';
}
