import { type Clock, utcTime } from '@skep/core/time/clock.ts';
import type { ChangeFeed } from './change-feed.ts';
import { removeReplica, renewReplica } from './writes/config-generation.ts';
import type { Database } from './database.ts';
import { readEntries, readSomeEntries, visitEntries } from './reads/entries.ts';
import { deletingVersion, marking, publishing, relabelling } from './writes/entry-writes.ts';
import { acquireLease, type LeaseTerm, releaseLease, renewLease } from './writes/leases.ts';
import { listEntries, listVersions } from './reads/listed-entries.ts';
import { findManaged } from './writes/managed-entries.ts';
import { reconciling } from './writes/reconcile.ts';
import { deletingRegistry, listRegistries, puttingRegistry, readRegistry } from './writes/registries.ts';
import { replacing } from './writes/replace-entries.ts';
import { changesSince } from './writes/revisions.ts';
import { deletingSource, listSources, puttingSource, readSource } from './writes/sources.ts';
import { readStatus, readStatuses, writeStatus } from './writes/statuses.ts';
import type {
  ChangeFeed as ChangeFeedPort,
  EntryStore,
  RegistryStore,
  SourceStore,
  Store,
  SyncStore,
} from './store.ts';
import { Writes } from './writes/writes.ts';

export interface SqlStoreOptions {
  readonly database: Database;
  readonly feed: ChangeFeed;
  readonly clock: Clock;
}

/** What a part of the store is made of. */
interface Parts {
  readonly database: Database;
  readonly writes: Writes;
  /** Runs a statement outside of transactions, and says in our words what went wrong. */
  readonly guarded: <T>(work: () => Promise<T>) => Promise<T>;
}

/** The store over a database: the same statements whichever it is. */
export function sqlStore({ database, feed, clock }: SqlStoreOptions): Store {
  const writes = new Writes({
    database,
    now: () => utcTime(clock),
    feed,
  });
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (cause) {
      throw database.failure(cause);
    }
  };
  const parts: Parts = { database, writes, guarded };
  let closing: Promise<void> | undefined;
  return {
    ...sourceStore(parts),
    ...registryStore(parts),
    ...entryStore(parts),
    ...syncStore(parts, clock),
    ...changeFeed(parts, feed),
    reconcile: (desired, replica) => writes.alone(reconciling(desired, replica)),
    renewReplica: (replica) => guarded(() => renewReplica(database.writer, replica, clock.now())),
    removeReplica: (replica) => guarded(() => removeReplica(database.writer, replica)),
    ping: () => guarded(() => database.ping()),
    close: () => (closing ??= closed(parts, feed)),
  };
}

async function closed({ writes, database }: Parts, feed: ChangeFeed): Promise<void> {
  feed.close();
  await writes.close();
  await database.close();
}

function sourceStore({ database: { reader }, writes, guarded }: Parts): SourceStore {
  return {
    listSources: () => guarded(() => listSources(reader)),
    readSource: (name) => guarded(() => readSource(reader, name)),
    putSource: (name, settings, decide) => writes.alone(puttingSource(name, settings, decide)),
    deleteSource: (name, decide) => writes.alone(deletingSource(name, decide)),
  };
}

function registryStore({ database: { reader }, writes, guarded }: Parts): RegistryStore {
  return {
    listRegistries: () => guarded(() => listRegistries(reader)),
    readRegistry: (name) => guarded(() => readRegistry(reader, name)),
    putRegistry: (name, settings, decide) => writes.alone(puttingRegistry(name, settings, decide)),
    deleteRegistry: (name, decide) => writes.alone(deletingRegistry(name, decide)),
  };
}

function entryStore({ database, writes, guarded }: Parts): EntryStore {
  const { reader } = database;
  return {
    readEntries: (source) => guarded(() => readEntries(database, source)),
    visitEntries: (source, visit) => guarded(() => visitEntries(database, source, visit)),
    readSomeEntries: (source, entries) => guarded(() => readSomeEntries(reader, source, entries)),
    listEntries: (of, part) => guarded(() => listEntries(reader, of, part)),
    listVersions: (source, part) => guarded(() => listVersions(reader, source, part)),
    findManaged: (address) => guarded(() => findManaged(reader, database, address)),
    publish: (request, decide) => writes.shared(publishing(request, decide)),
    markVersions: (request, choose) => writes.shared(marking(request, choose)),
    deleteVersion: (address, version, choose) => writes.shared(deletingVersion(address, version, choose)),
    setEntryClaims: (address, claims, choose) => writes.shared(relabelling(address, claims, choose)),
  };
}

function syncStore({ database: { reader, writer }, writes, guarded }: Parts, clock: Clock): SyncStore {
  const term = (milliseconds: number): LeaseTerm => {
    const now = clock.now();
    return { now, until: now + milliseconds };
  };
  return {
    replaceEntries: (replacement) => writes.alone(replacing(replacement)),
    readStatus: (source) => guarded(() => readStatus(reader, source)),
    readStatuses: () => guarded(() => readStatuses(reader)),
    writeStatus: (source, status, lease) => guarded(() => writeStatus(writer, { source, status, lease })),
    acquireLease: (lease, milliseconds) => guarded(() => acquireLease(writer, lease, term(milliseconds))),
    renewLease: (lease, milliseconds) => guarded(() => renewLease(writer, lease, term(milliseconds))),
    releaseLease: (lease) => guarded(() => releaseLease(writer, lease)),
  };
}

function changeFeed({ database: { reader }, guarded }: Parts, feed: ChangeFeed): ChangeFeedPort {
  return {
    changesSince: (revision) => guarded(() => changesSince(reader, revision)),
    onChange: (listener, prepare) => feed.subscribe(listener, prepare),
  };
}
