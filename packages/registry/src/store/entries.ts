import { type ExpressionBuilder, type Expression, type Kysely, type SqlBool } from 'kysely';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ClaimSet } from '../engine/claim-classes.ts';
import type { ChooseEntry, DecideOnPublish, EntryAddress, ExistingEntry } from './decisions.ts';
import { digestOf } from './diff.ts';
import type { EntryIdentity, StoredEntry, StoredSource, StoredVersion } from './rows.ts';
import { storedSource } from './sources.ts';
import type { DeletedVersion, PublishedVersion, PublishRequest } from './store.ts';
import type { EntryVersionTable, Tables } from './tables.ts';
import { versionRow } from './version-row.ts';
import type { Work, Write } from './write.ts';

/** Entries that one statement asks for by name. */
const NAMES_PER_STATEMENT = 200;

export async function readEntries(db: Kysely<Tables>, source: string): Promise<StoredEntry[]> {
  return grouped(await versionRows(db, source).execute());
}

export async function readSomeEntries(
  db: Kysely<Tables>,
  source: string,
  entries: readonly EntryIdentity[],
): Promise<StoredEntry[]> {
  const found: StoredEntry[] = [];
  for (let at = 0; at < entries.length; at += NAMES_PER_STATEMENT) {
    const some = entries.slice(at, at + NAMES_PER_STATEMENT);
    const rows = await versionRows(db, source)
      .where((where) =>
        where.or(
          some.map(({ kind, namespace, name }) =>
            where.and({ 'e.kind': kind, 'e.namespace': namespace, 'e.name': name }),
          ),
        ),
      )
      .execute();
    found.push(...grouped(rows));
  }
  return found;
}

export async function findManaged(db: Kysely<Tables>, address: EntryAddress): Promise<ExistingEntry[]> {
  const managed = await db
    .selectFrom('source')
    .select('name')
    .where('kind', '=', 'managed')
    .executeTakeFirst();
  return managed === undefined ? [] : existingEntries(db, managed.name, address);
}

/** Publishes of one managed source judge and write one after the other: its row is the lock. */
export function publishing(request: PublishRequest, decide: DecideOnPublish): Work<PublishedVersion> {
  const { kind, namespace, name, claims, version } = request;
  return async (write) => {
    const target = await managedSource(write);
    const [entry] = target === undefined ? [] : await existingEntries(write.db, target.name, request);
    decide({ target, entry });
    if (target === undefined) throw new SkepError('access/no-managed-source');
    if (entry?.versions.includes(version.version) === true) throw new SkepError('access/version-exists');
    const identity = { source: target.name, kind, namespace, name };
    write.record({ subject: 'entry', entry: identity });
    if (entry === undefined)
      await write.db
        .insertInto('entry')
        .values({ ...identity, claims })
        .execute();
    const times = { createdAt: write.now, updatedAt: write.now };
    await write.db
      .insertInto('entry_version')
      .values(versionRow(target.name, { ...request, content: version, digest: digestOf(version), ...times }))
      .execute();
    return {
      ...identity,
      claims: entry?.claims ?? claims,
      version: { ...version, ...times },
      versions: [...(entry?.versions ?? []), version.version],
    };
  };
}

export function deletingVersion(
  address: EntryAddress,
  version: string,
  choose: ChooseEntry,
): Work<DeletedVersion> {
  return async (write) => {
    const { source, entry } = await chosen(write, address, choose);
    if (!entry.versions.includes(version)) {
      throw new SkepError('registry/not-found', { message: `"${entry.name}" has no version "${version}"` });
    }
    write.record({ subject: 'entry', entry: { source, ...identityOf(entry) } });
    if (entry.versions.length === 1) {
      await write.db.deleteFrom('entry').where(ofEntry(source, entry)).execute();
    } else {
      await write.db
        .deleteFrom('entry_version')
        .where(ofEntry(source, entry))
        .where('version', '=', version)
        .execute();
    }
    return { source, entry };
  };
}

export function relabelling(
  address: EntryAddress,
  claims: ClaimSet,
  choose: ChooseEntry,
): Work<ExistingEntry> {
  return async (write) => {
    const { source, entry } = await chosen(write, address, choose);
    if (entry.claims === claims) return entry;
    write.record({ subject: 'entry', entry: { source, ...identityOf(entry) } });
    await write.db.updateTable('entry').set({ claims }).where(ofEntry(source, entry)).execute();
    return { ...entry, claims };
  };
}

async function chosen(
  write: Write,
  address: EntryAddress,
  choose: ChooseEntry,
): Promise<{ readonly source: string; readonly entry: ExistingEntry }> {
  const managed = await managedSource(write);
  const found = managed === undefined ? [] : await existingEntries(write.db, managed.name, address);
  const entry = choose(found);
  if (managed === undefined || !found.includes(entry)) throw new SkepError('registry/not-found');
  return { source: managed.name, entry };
}

async function managedSource({ db, locksRows }: Write): Promise<StoredSource | undefined> {
  const row = await db
    .selectFrom('source')
    .selectAll()
    .where('kind', '=', 'managed')
    .$if(locksRows, (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
  return row === undefined ? undefined : storedSource(row);
}

async function existingEntries(
  db: Kysely<Tables>,
  source: string,
  { kind, namespace, name }: EntryAddress,
): Promise<ExistingEntry[]> {
  const rows = await db
    .selectFrom('entry as e')
    .leftJoin('entry_version as v', (join) =>
      join
        .onRef('v.source', '=', 'e.source')
        .onRef('v.kind', '=', 'e.kind')
        .onRef('v.namespace', '=', 'e.namespace')
        .onRef('v.name', '=', 'e.name'),
    )
    .where('e.source', '=', source)
    .where('e.kind', '=', kind)
    .where('e.name', '=', name)
    .$if(namespace !== undefined, (query) => query.where('e.namespace', '=', namespace ?? ''))
    .select(['e.kind', 'e.namespace', 'e.name', 'e.claims', 'v.version'])
    .execute();
  return [...Map.groupBy(rows, (row) => row.namespace).values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    return {
      ...identityOf(first),
      claims: first.claims,
      versions: group.flatMap((row) => row.version ?? []),
    };
  });
}

function versionRows(db: Kysely<Tables>, source: string) {
  return db
    .selectFrom('entry as e')
    .innerJoin('entry_version as v', (join) =>
      join
        .onRef('v.source', '=', 'e.source')
        .onRef('v.kind', '=', 'e.kind')
        .onRef('v.namespace', '=', 'e.namespace')
        .onRef('v.name', '=', 'e.name'),
    )
    .where('e.source', '=', source)
    .select(['e.kind', 'e.namespace', 'e.name', 'e.claims'])
    .select(['v.version', 'v.title', 'v.description', 'v.document', 'v.official'])
    .select(['v.created_at', 'v.updated_at'])
    .orderBy('e.kind')
    .orderBy('e.namespace')
    .orderBy('e.name')
    .orderBy('v.version');
}

type VersionOfEntry = Omit<EntryVersionTable, 'source' | 'digest'> & { readonly claims: string };

/** Rows of one entry stand together. */
function grouped(rows: readonly VersionOfEntry[]): StoredEntry[] {
  const entries: (StoredEntry & { readonly versions: StoredVersion[] })[] = [];
  for (const row of rows) {
    const { kind, namespace, name, claims } = row;
    const last = entries.at(-1);
    if (last?.name === name && last.namespace === namespace && last.kind === kind) {
      last.versions.push(storedVersion(row));
    } else {
      entries.push({ kind, namespace, name, claims, versions: [storedVersion(row)] });
    }
  }
  return entries;
}

function storedVersion(row: VersionOfEntry): StoredVersion {
  const { version, title, description, document, official } = row;
  return {
    version,
    title,
    description,
    document,
    official,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export const ofEntry =
  (source: string, { kind, namespace, name }: EntryIdentity) =>
  (where: ExpressionBuilder<Tables, 'entry' | 'entry_version'>): Expression<SqlBool> =>
    where.and({ source, kind, namespace, name });

const identityOf = ({ kind, namespace, name }: EntryIdentity): EntryIdentity => ({ kind, namespace, name });
