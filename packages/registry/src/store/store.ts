import { utcTime, type Clock } from '@skep/core/time/clock.ts';
import type { Kysely } from 'kysely';
import type { ChangeFeed, ChangeListener, PrepareForChange } from './change-feed.ts';
import { guarded, type Database, type Moment, type Write } from './database.ts';
import type { EntryAddress } from './decisions.ts';
import { readEntries, readSomeEntries, visitEntries } from './reads/entries.ts';
import { listEntries, listVersions } from './reads/listed-entries.ts';
import type { StoredEntry } from './rows.ts';
import type { Tables } from './schema/tables.ts';
import { removeReplica, renewReplica } from './writes/config-generation.ts';
import { deletingVersion, marking, publishing, relabelling } from './writes/entry-writes.ts';
import { acquireLease, releaseLease, renewLease } from './writes/leases.ts';
import { findManaged, type EntryWork } from './writes/managed-entries.ts';
import { reconcile } from './writes/reconcile.ts';
import { deleteRegistry, listRegistries, putRegistry, readRegistry } from './writes/registries.ts';
import { replaceEntries } from './writes/replace-entries.ts';
import { changesSince } from './writes/revisions.ts';
import { deleteSource, listSources, putSource, readSource } from './writes/sources.ts';
import { readStatus, readStatuses, writeStatus } from './writes/statuses.ts';
import { Writes } from './writes/writes.ts';

export interface StoreOptions {
  readonly database: Database;
  readonly feed: ChangeFeed;
  readonly clock: Clock;
}

/**
 * Durable state of the registry. Consumer reads are answered from memory; this is read at start, after a change, and by
 * the admin API. Every method that writes is one transaction: after a crash the store holds the state before or after,
 * never between, and what was acknowledged is there.
 *
 * Besides the codes of the decisions, every method fails with `store/failed`, `store/unavailable` (no connection; worth
 * trying again), `store/locked` (SQLite: another process writes for too long) or `store/conflict` (others were faster
 * four times in a row).
 */
export type Store = ReturnType<typeof sqlStore>;

/** The store over a database: the same statements whichever it is, a row for each method. */
export function sqlStore({ database, feed, clock }: StoreOptions) {
  const writes = new Writes({ database, now: () => utcTime(clock), feed });
  let closing: Promise<void> | undefined;
  return {
    ...readingMethods(database),
    ...writingMethods(writes),
    ...momentaryMethods(database, clock),
    /**
     * Calls back with the newest revision soon after any commit (at once in this process, below a second in others, by the
     * periodic check after a lost notice), and once soon after it was asked for, so that nothing falls between a first read
     * and this. One call may stand for many commits. The callback must not throw. The returned function ends it.
     */
    onChange: (listener: ChangeListener, prepare?: PrepareForChange) => feed.subscribe(listener, prepare),
    /** Waits for writes that run. Idempotent. */
    close: () => (closing ??= closeStore(feed, writes, database)),
  };
}

async function closeStore(feed: ChangeFeed, writes: Writes, database: Database): Promise<void> {
  feed.close();
  await writes.close();
  await database.close();
}

function readingMethods(database: Database) {
  const reading =
    <Given extends unknown[], T>(read: (db: Kysely<Tables>, ...given: Given) => Promise<T>) =>
    (...given: Given) =>
      guarded(database.failure, () => read(database.reader, ...given));
  return {
    listSources: reading(listSources),
    readSource: reading(readSource),
    listRegistries: reading(listRegistries),
    readRegistry: reading(readRegistry),
    readEntries: (source: string) => guarded(database.failure, () => readEntries(database, source)),
    visitEntries: (source: string, visit: (entry: StoredEntry) => void) =>
      guarded(database.failure, () => visitEntries(database, source, visit)),
    readSomeEntries: reading(readSomeEntries),
    listEntries: reading(listEntries),
    listVersions: reading(listVersions),
    findManaged: (address: EntryAddress) => guarded(database.failure, () => findManaged(database, address)),
    readStatus: reading(readStatus),
    readStatuses: reading(readStatuses),
    changesSince: reading(changesSince),
    /** Resolves when the store answers. */
    ping: () => guarded(database.failure, () => database.ping()),
  };
}

/** Each call is one transaction; those of entries may share theirs with others. */
function writingMethods(writes: Writes) {
  const alone =
    <Given extends unknown[], T>(work: (write: Write, ...given: Given) => Promise<T>) =>
    (...given: Given) =>
      writes.alone((write) => work(write, ...given));
  const shared =
    <Given extends unknown[], T>(work: (...given: Given) => EntryWork<T>) =>
    (...given: Given) =>
      writes.shared(work(...given));
  return {
    reconcile: alone(reconcile),
    putSource: alone(putSource),
    deleteSource: alone(deleteSource),
    putRegistry: alone(putRegistry),
    deleteRegistry: alone(deleteRegistry),
    replaceEntries: alone(replaceEntries),
    publish: shared(publishing),
    markVersions: shared(marking),
    deleteVersion: shared(deletingVersion),
    setEntryClaims: shared(relabelling),
  };
}

/** Each call is one statement, which needs no transaction and is no change: nothing that is served depends on it. */
function momentaryMethods(database: Database, clock: Clock) {
  const stating =
    <Given extends unknown[], T>(state: (moment: Moment, ...given: Given) => Promise<T>) =>
    (...given: Given) =>
      guarded(database.failure, () => state({ db: database.writer, now: clock.now() }, ...given));
  return {
    renewReplica: stating(renewReplica),
    removeReplica: stating(removeReplica),
    writeStatus: stating(writeStatus),
    acquireLease: stating(acquireLease),
    renewLease: stating(renewLease),
    releaseLease: stating(releaseLease),
  };
}
