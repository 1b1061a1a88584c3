import { type Kysely, sql } from 'kysely';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Revision, WrittenEntries } from '../changes.ts';
import type { Database } from '../database.ts';
import type {
  ChooseEntry,
  EntryAddress,
  ExistingEntry,
  ManagedSource,
  PublishRequest,
} from '../decisions.ts';
import { ofEntry } from '../reads/entries.ts';
import { DEFAULT_LIMITS, type Limits } from '../../shape/limits.ts';
import { type EntryBatch, insertBatch, versionRow } from './entry-batch.ts';
import {
  identityKey,
  identityOf,
  type EntryIdentity,
  type NamedRegistry,
  type StoredEntry,
  type StoredVersion,
} from '../rows.ts';
import { managedQuery, type ManagedRows, managedRows, type PlannedWork } from './managed-rows.ts';
import { readRevision } from './revisions.ts';
import type { EntryTable, EntryVersionTable, Tables } from '../schema/tables.ts';

/** An entry of the managed source that a write has picked. */
export interface ChosenEntry {
  readonly source: string;
  readonly entry: ExistingEntry;
}

/** Work that may share its transaction. It must refuse, if it does, before its first change. */
export interface EntryWork<T> extends PlannedWork {
  readonly act: (managed: ManagedEntries) => T | Promise<T>;
}

/** SQLite takes 32,766 parameters. */
const NAMES_PER_STATEMENT = 10_000;

/** What a transaction runs on. */
export interface Ground {
  readonly db: Kysely<Tables>;
  readonly database: Pick<Database, 'beginManaged' | 'commitBatch' | 'commitAt' | 'among'>;
  /** RFC 3339 UTC. */
  readonly now: string;
  /** Called right before something is committed, with what it leaves where that is known. */
  readonly committing: (written?: WrittenEntries) => void;
}

export interface Finished {
  readonly revision: Revision;
  /** Absent where nothing changed. */
  readonly written?: WrittenEntries;
}

/**
 * The entries of the managed source that one transaction is about, read with one statement however many they are, and kept
 * in step with what the transaction does. What is published is written together at the end: many publishes cost the
 * database as many statements as one, and nobody has to read back what the transaction knows.
 */
export class ManagedEntries {
  /** Undefined where there is no managed source. Its row is locked: it is the lock of everything that it holds. */
  readonly source: ManagedSource | undefined;
  readonly now: string;
  /** What it began with. */
  readonly rows: ManagedRows;
  readonly #ground: Ground;
  readonly #entries: Map<string, StoredEntry>;
  readonly #changed = new Map<string, EntryIdentity>();
  #changes = 0;
  #newEntries: EntryTable[] = [];
  #newVersions: EntryVersionTable[] = [];

  /** On rows that are known: for entries that nobody has, added by `commitKnown`. */
  constructor(ground: Ground, rows: ManagedRows) {
    this.#ground = ground;
    this.now = ground.now;
    this.rows = rows;
    this.source = rows.source;
    this.#entries = new Map(rows.entries.map((entry) => [identityKey(entry), entry]));
  }

  /** Begins the transaction of these works. */
  static async begin(
    ground: Ground,
    works: readonly Pick<EntryWork<unknown>, 'address'>[],
  ): Promise<ManagedEntries> {
    const { db, database } = ground;
    const addresses = works.map(({ address }) => address);
    const rows = await database.beginManaged(db, managedQuery(database, addresses));
    return new ManagedEntries(ground, managedRows(rows));
  }

  /** How often something was changed. */
  get changes(): number {
    return this.#changes;
  }

  registry(name: string | undefined): NamedRegistry | undefined {
    return this.rows.registries.find((registry) => registry.name === name);
  }

  /** Of those that were read; several only for an address without namespace. */
  find({ kind, namespace, name }: EntryAddress): ExistingEntry[] {
    const found =
      namespace === undefined
        ? [...this.#entries.values()].filter((entry) => entry.kind === kind && entry.name === name)
        : [this.#entries.get(identityKey({ kind, namespace, name })) ?? []].flat();
    return found.map(existingEntry);
  }

  /** The entry that the decision picks. Fails as that does, or with `registry/not-found`, also for an unknown version. */
  choose(address: EntryAddress, choose: ChooseEntry, version?: string): ChosenEntry {
    const found = this.find(address);
    const entry = choose(found, { target: this.source, registry: this.registry(address.registry) });
    if (this.source === undefined || !found.includes(entry)) throw new SkepError('registry/not-found');
    if (version !== undefined && !entry.versions.includes(version)) {
      throw new SkepError('registry/not-found', { message: `"${entry.name}" has no version "${version}"` });
    }
    return { source: this.source.name, entry };
  }

  /**
   * Adds a version, with its entry where that is new. Returns the entry as it is then. Fails with `access/version-exists`
   * where the entry has as much as it may have; what is there beyond stays.
   */
  add(source: string, { claims, limits, ...request }: PublishRequest, version: StoredVersion): ExistingEntry {
    const identity = identityOf(request);
    const before = this.#entries.get(identityKey(identity));
    if (before !== undefined) assertRoom(before, version, limits);
    else this.#newEntries.push({ source, ...identity, claims });
    this.#newVersions.push(versionRow(source, identity, version));
    const versions = [...(before?.versions ?? []), version];
    return this.#now({ ...identity, claims: before?.claims ?? claims, versions });
  }

  /** Takes the entry along with its last version. */
  async removeVersion(chosen: ChosenEntry, version: string): Promise<void> {
    const { source, entry } = chosen;
    const before = await this.#held(entry);
    const versions = before.versions.filter((other) => other.version !== version);
    if (versions.length > 0) {
      await this.#deleteVersions(chosen, [version]);
      this.#now({ ...before, versions });
    } else {
      await this.#ground.db.deleteFrom('entry').where(ofEntry(source, entry)).execute();
      this.#entries.delete(this.#recordChange(entry));
    }
  }

  /** Gives versions another official block; the versions as they are then. */
  async mark(chosen: ChosenEntry, versions: readonly string[], official: string): Promise<StoredVersion[]> {
    const before = await this.#held(chosen.entry);
    const wanted = new Set(versions);
    const marked = before.versions.flatMap((version) =>
      wanted.has(version.version) ? { ...version, official, updatedAt: this.now } : [],
    );
    // Written anew with what is added: one statement however many they are.
    await this.#deleteVersions(
      chosen,
      marked.map(({ version }) => version),
    );
    for (const version of marked) this.#newVersions.push(versionRow(chosen.source, before, version));
    const left = before.versions.filter(({ version }) => !wanted.has(version));
    this.#now({ ...before, versions: [...left, ...marked] });
    return marked;
  }

  async #deleteVersions({ source, entry }: ChosenEntry, versions: readonly string[]): Promise<void> {
    for (let at = 0; at < versions.length; at += NAMES_PER_STATEMENT) {
      await this.#ground.db
        .deleteFrom('entry_version')
        .where(ofEntry(source, entry))
        .where('version', 'in', versions.slice(at, at + NAMES_PER_STATEMENT))
        .execute();
    }
  }

  async relabel({ source, entry }: ChosenEntry, claims: string): Promise<ExistingEntry> {
    const before = await this.#held(entry);
    await this.#ground.db.updateTable('entry').set({ claims }).where(ofEntry(source, entry)).execute();
    return this.#now({ ...before, claims });
  }

  /** Commits what was added and changed, with the next revision. */
  async commit(): Promise<Finished> {
    const { db, database } = this.#ground;
    const left = this.#leave();
    if (left !== undefined) {
      return { revision: await database.commitBatch(db, left.batch), written: left.written };
    }
    const revision = await readRevision(db);
    await sql`commit`.execute(db);
    return { revision };
  }

  /**
   * The same without a transaction before it. Undefined, with nothing written, where the rows are not those of the newest
   * revision any more; also where nothing changed, because nothing then has proved them.
   */
  async commitKnown(): Promise<Finished | undefined> {
    const left = this.#leave();
    if (left === undefined) return undefined;
    const revision = await this.#ground.database.commitAt?.(left.batch, this.rows.revision);
    return revision === undefined ? undefined : { revision, written: left.written };
  }

  /** What is about to be committed; undefined where nothing changed. */
  #leave(): { readonly batch: EntryBatch; readonly written: WrittenEntries } | undefined {
    if (this.source === undefined || this.#changed.size === 0) return undefined;
    const about = { source: this.source.name, changed: [...this.#changed.values()] };
    const entries = [...this.#changed.keys()].flatMap((key) => this.#entries.get(key) ?? []);
    const written = { ...about, entries };
    this.#ground.committing(written);
    return { batch: { ...about, ...this.#taken() }, written };
  }

  /** The entry, all that was added to it written. */
  async #held(entry: ExistingEntry): Promise<StoredEntry> {
    const held = this.#entries.get(identityKey(entry));
    if (held === undefined) throw new SkepError('internal/bug', { message: 'the entry was not read' });
    await insertBatch(this.#ground.db, this.#taken());
    return held;
  }

  #taken(): Pick<EntryBatch, 'entries' | 'versions'> {
    const taken = { entries: this.#newEntries, versions: this.#newVersions };
    this.#newEntries = [];
    this.#newVersions = [];
    return taken;
  }

  #now(entry: StoredEntry): ExistingEntry {
    this.#entries.set(this.#recordChange(entry), entry);
    return existingEntry(entry);
  }

  #recordChange(entry: EntryIdentity): string {
    const key = identityKey(entry);
    this.#changes += 1;
    this.#changed.set(key, identityOf(entry));
    return key;
  }
}

function assertRoom(
  { name, versions }: StoredEntry,
  { document }: StoredVersion,
  { maxEntryVersions, maxEntrySize }: Limits = DEFAULT_LIMITS,
): void {
  const bytes = [document, ...versions.map((version) => version.document)]
    .map((text) => Buffer.byteLength(text))
    .reduce((sum, size) => sum + size);
  if (versions.length < maxEntryVersions && bytes <= maxEntrySize) return;
  throw new SkepError('access/version-exists', {
    message: `"${name}" has as many versions as an entry may have (${maxEntryVersions}, or ${maxEntrySize} bytes of documents)`,
    hint: 'delete versions that nobody needs any more, or raise limits.maxEntryVersions or limits.maxEntrySize',
  });
}

/** Entries of the managed source under an address; several only for an address without namespace. */
export async function findManaged(
  database: Pick<Database, 'among' | 'reader'>,
  address: EntryAddress,
): Promise<ExistingEntry[]> {
  const { rows } = await managedQuery(database, [address]).execute(database.reader);
  return managedRows(rows).entries.map(existingEntry);
}

function existingEntry({ versions, ...entry }: StoredEntry): ExistingEntry {
  return { ...entry, versions: versions.map(({ version }) => version) };
}
