import { utcTime, type Clock } from '@skep/core/time/clock.ts';
import type { Kysely } from 'kysely';
import type { ChangeFeed, ChangeListener, PrepareForChange } from './change-feed.ts';
import { translateFailures, type Database, type Moment, type Write } from './database.ts';
import type { EntryAddress } from './decisions.ts';
import { readEntries, readSomeEntries, visitEntries } from './reads/entries.ts';
import { listEntries, listVersions } from './reads/listed-entries.ts';
import type { StoredEntry } from './rows.ts';
import type { Tables } from './schema/tables.ts';
import { removeReplica, renewReplica } from './writes/config-generation.ts';
import { deleteVersionWork, markWork, publishWork, relabelWork } from './writes/entry-writes.ts';
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
  const readMethod =
    <Given extends unknown[], T>(read: (db: Kysely<Tables>, ...given: Given) => Promise<T>) =>
    (...given: Given) =>
      translateFailures(database.failure, () => read(database.reader, ...given));
  return {
    listSources: readMethod(listSources),
    readSource: readMethod(readSource),
    listRegistries: readMethod(listRegistries),
    readRegistry: readMethod(readRegistry),
    readEntries: (source: string) => translateFailures(database.failure, () => readEntries(database, source)),
    visitEntries: (source: string, visit: (entry: StoredEntry) => void) =>
      translateFailures(database.failure, () => visitEntries(database, source, visit)),
    readSomeEntries: readMethod(readSomeEntries),
    listEntries: readMethod(listEntries),
    listVersions: readMethod(listVersions),
    findManaged: (address: EntryAddress) =>
      translateFailures(database.failure, () => findManaged(database, address)),
    readStatus: readMethod(readStatus),
    readStatuses: readMethod(readStatuses),
    changesSince: readMethod(changesSince),
    /** Resolves when the store answers. */
    ping: () => translateFailures(database.failure, () => database.ping()),
  };
}

/** Each call is one transaction; those of entries may share theirs with others. */
function writingMethods(writes: Writes) {
  const writeMethod =
    <Given extends unknown[], T>(work: (write: Write, ...given: Given) => Promise<T>) =>
    (...given: Given) =>
      writes.alone((write) => work(write, ...given));
  const sharedMethod =
    <Given extends unknown[], T>(work: (...given: Given) => EntryWork<T>) =>
    (...given: Given) =>
      writes.shared(work(...given));
  return {
    reconcile: writeMethod(reconcile),
    putSource: writeMethod(putSource),
    deleteSource: writeMethod(deleteSource),
    putRegistry: writeMethod(putRegistry),
    deleteRegistry: writeMethod(deleteRegistry),
    replaceEntries: writeMethod(replaceEntries),
    publish: sharedMethod(publishWork),
    markVersions: sharedMethod(markWork),
    deleteVersion: sharedMethod(deleteVersionWork),
    setEntryClaims: sharedMethod(relabelWork),
  };
}

/** Each call is one statement, which needs no transaction and is no change: nothing that is served depends on it. */
function momentaryMethods(database: Database, clock: Clock) {
  const statementMethod =
    <Given extends unknown[], T>(state: (moment: Moment, ...given: Given) => Promise<T>) =>
    (...given: Given) =>
      translateFailures(database.failure, () => state({ db: database.writer, now: clock.now() }, ...given));
  return {
    renewReplica: statementMethod(renewReplica),
    removeReplica: statementMethod(removeReplica),
    writeStatus: statementMethod(writeStatus),
    acquireLease: statementMethod(acquireLease),
    renewLease: statementMethod(renewLease),
    releaseLease: statementMethod(releaseLease),
  };
}
