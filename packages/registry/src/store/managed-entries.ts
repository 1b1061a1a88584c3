import type { Kysely } from 'kysely';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ChooseEntry, EntryAddress, ExistingEntry } from './decisions.ts';
import { digestOf } from './diff.ts';
import { entriesNamed, ofEntry } from './entries.ts';
import { identityKey, identityOf } from './entry-identity.ts';
import type { EntryIdentity, StoredSource, StoredVersion } from './rows.ts';
import { storedSource } from './sources.ts';
import type { EntryTable, EntryVersionTable, Tables } from './tables.ts';
import { versionRow } from './version-row.ts';
import type { Write } from './write.ts';

/** An entry of the managed source that a write has picked. */
export interface ChosenEntry {
  readonly source: string;
  readonly entry: ExistingEntry;
}

/** Work that may share its transaction. It must refuse, if it does, before its first change. */
export interface EntryWork<T> {
  /** Which entry of the managed source it is about, so that one statement reads for all of them. */
  readonly address: EntryAddress;
  readonly act: (managed: ManagedEntries) => T | Promise<T>;
}

/**
 * The entries of the managed source that one transaction is about, read with one statement however many they are, and kept
 * in step with what the transaction does. What is published is written together at the end: many publishes cost the
 * database as many statements as one.
 */
export class ManagedEntries {
  /** Undefined where there is no managed source. Its row is locked: it is the lock of everything that it holds. */
  readonly source: StoredSource | undefined;
  readonly write: Write;
  readonly #entries: Map<string, ExistingEntry>;
  #newEntries: EntryTable[] = [];
  #newVersions: EntryVersionTable[] = [];

  private constructor(write: Write, source: StoredSource | undefined, entries: readonly ExistingEntry[]) {
    this.write = write;
    this.source = source;
    this.#entries = new Map(entries.map((entry) => [identityKey(entry), entry]));
  }

  static async read(write: Write, addresses: readonly EntryAddress[]): Promise<ManagedEntries> {
    const source = await lockedManaged(write);
    const entries = source === undefined ? [] : await existingEntries(write.db, source.name, addresses);
    return new ManagedEntries(write, source, entries);
  }

  /** Of those that were read; several only for an address without namespace. */
  find({ kind, namespace, name }: EntryAddress): ExistingEntry[] {
    if (namespace !== undefined)
      return [this.#entries.get(identityKey({ kind, namespace, name })) ?? []].flat();
    return [...this.#entries.values()].filter((entry) => entry.kind === kind && entry.name === name);
  }

  /** The entry that the decision picks; fails as the decision does, or with `registry/not-found`. */
  choose(address: EntryAddress, choose: ChooseEntry): ChosenEntry {
    const found = this.find(address);
    const entry = choose(found);
    if (this.source === undefined || !found.includes(entry)) throw new SkepError('registry/not-found');
    return { source: this.source.name, entry };
  }

  /** Adds a version, with its entry where that is new. Returns the entry as it is then. */
  add(
    source: string,
    { claims, ...entry }: EntryIdentity & Pick<ExistingEntry, 'claims'>,
    version: StoredVersion,
  ): ExistingEntry {
    const identity = identityOf(entry);
    const before = this.#entries.get(identityKey(identity));
    this.write.record({ subject: 'entry', entry: { source, ...identity } });
    if (before === undefined) this.#newEntries.push({ source, ...identity, claims });
    const { createdAt, updatedAt } = version;
    const digest = digestOf(version);
    const row = versionRow(source, { ...identity, content: version, digest, createdAt, updatedAt });
    this.#newVersions.push(row);
    const versions = [...(before?.versions ?? []), version.version];
    return this.#now({ ...identity, claims: before?.claims ?? claims, versions });
  }

  /** Takes the entry along with its last version. */
  async removeVersion({ source, entry }: ChosenEntry, version: string): Promise<void> {
    await this.flush();
    this.write.record({ subject: 'entry', entry: { source, ...identityOf(entry) } });
    const left = entry.versions.filter((other) => other !== version);
    if (left.length === 0) {
      await this.write.db.deleteFrom('entry').where(ofEntry(source, entry)).execute();
      this.#entries.delete(identityKey(entry));
    } else {
      await this.write.db
        .deleteFrom('entry_version')
        .where(ofEntry(source, entry))
        .where('version', '=', version)
        .execute();
      this.#now({ ...entry, versions: left });
    }
  }

  async relabel({ source, entry }: ChosenEntry, claims: string): Promise<ExistingEntry> {
    await this.flush();
    this.write.record({ subject: 'entry', entry: { source, ...identityOf(entry) } });
    await this.write.db.updateTable('entry').set({ claims }).where(ofEntry(source, entry)).execute();
    return this.#now({ ...entry, claims });
  }

  /** Writes what was added; comes last in the transaction. */
  async flush(): Promise<void> {
    const [entries, versions] = [this.#newEntries, this.#newVersions];
    this.#newEntries = [];
    this.#newVersions = [];
    const { db } = this.write;
    if (entries.length > 0) await db.insertInto('entry').values(entries).execute();
    if (versions.length > 0) await db.insertInto('entry_version').values(versions).execute();
  }

  #now(entry: ExistingEntry): ExistingEntry {
    this.#entries.set(identityKey(entry), entry);
    return entry;
  }
}

export async function findManaged(db: Kysely<Tables>, address: EntryAddress): Promise<ExistingEntry[]> {
  const managed = await db
    .selectFrom('source')
    .select('name')
    .where('kind', '=', 'managed')
    .executeTakeFirst();
  return managed === undefined ? [] : existingEntries(db, managed.name, [address]);
}

async function lockedManaged({ db, locksRows }: Write): Promise<StoredSource | undefined> {
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
  addresses: readonly EntryAddress[],
): Promise<ExistingEntry[]> {
  const rows = await db
    .selectFrom('entry as e')
    .leftJoin('entry_version as v', (join) =>
      join
        .onRef('v.source', '=', 'e.source')
        .onRef('v.kind', '=', 'e.kind')
        .onRef('v.namespace', '=', 'e.namespace')
        .onRef('v.name', '=', 'e.name')
        .on('v.source', '=', source)
        .on(entriesNamed(addresses, 'v')),
    )
    .where('e.source', '=', source)
    .where(entriesNamed(addresses, 'e'))
    .select(['e.kind', 'e.namespace', 'e.name', 'e.claims', 'v.version'])
    .execute();
  return [...Map.groupBy(rows, identityKey).values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const versions = group.flatMap((row) => row.version ?? []);
    return { ...identityOf(first), claims: first.claims, versions };
  });
}
