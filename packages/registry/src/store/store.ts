import type { ClaimSet } from '../access/claim-set.ts';
import type { Changes, Revision, WrittenEntries } from './changes.ts';
import type {
  ChooseEntry,
  DecideOnPublish,
  DecideOnRegistry,
  DecideOnRegistryDeletion,
  DecideOnSource,
  DecideOnSourceDeletion,
  EntryAddress,
  ExistingEntry,
} from './decisions.ts';
import type { DesiredState, ReconcileReport } from './desired-state.ts';
import type { Limits } from '../shape/limits.ts';
import type { EntryPlace, ListedPart, VersionPlace } from './reads/listed-entries.ts';
import type {
  EntryIdentity,
  EntryKind,
  ListedEntry,
  ListedVersion,
  NewEntry,
  NewVersion,
  RegistrySettings,
  SourceSettings,
  StoredEntry,
  StoredRegistry,
  StoredSource,
  StoredVersion,
  SyncStatus,
} from './rows.ts';

/** What a write left behind, and the revision at which it is visible to everyone. */
export interface Committed<T> {
  readonly revision: Revision;
  readonly value: T;
}

export interface Replacement {
  readonly source: string;
  /**
   * Everything the source holds now, each identity and each version once. Entries of a synced source get the claims of
   * the source, whatever theirs are.
   */
  readonly entries: readonly NewEntry[];
  /** Time of new and changed versions. */
  readonly at: string;
  /** Written together with the entries. */
  readonly status: SyncStatus;
  /** With it the replacement is refused with `store/lease-lost` when somebody else has taken the lease over. */
  readonly lease?: Lease;
}

/** Somebody's right to synchronise a source, until a moment. Clocks of replicas should agree to a second or so. */
export interface Lease {
  readonly source: string;
  /** Unique to one process. */
  readonly owner: string;
}

export interface PublishRequest extends EntryIdentity {
  /** The registry whose door it came by; the decision sees it as it is then. */
  readonly registry?: string;
  readonly claims: ClaimSet;
  readonly version: NewVersion;
  /** How much the entry may hold with it: each write about an entry reads all of it while others wait. */
  readonly limits?: Limits;
  /** The reader's memory has no such entry. Only saves time: the commit finds out. */
  readonly seemsNew?: boolean;
}

export interface PublishedVersion extends EntryIdentity {
  readonly source: string;
  readonly claims: ClaimSet;
  readonly version: StoredVersion;
  /** All versions of the entry, this one included, in no particular order. */
  readonly versions: readonly string[];
}

export interface DeletedVersion {
  readonly source: string;
  /** As it was before; its last version takes the entry with it. */
  readonly entry: ExistingEntry;
}

/** What the registry itself says about versions, beside their documents. */
export interface MarkRequest {
  readonly address: EntryAddress;
  /** All versions of the entry when absent. */
  readonly version?: string;
  readonly mark: { readonly status: 'active' | 'deprecated' | 'deleted'; readonly message?: string };
}

export interface MarkedVersions {
  readonly source: string;
  /** Those that were marked, as they are now. */
  readonly marked: readonly StoredVersion[];
  /** All versions of the entry, in no particular order. */
  readonly versions: readonly string[];
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
export interface Store extends SourceStore, RegistryStore, EntryStore, SyncStore, ChangeFeed {
  /**
   * Makes the CONFIG part of the store what the configuration file says (docs/behaviour/registry.md#reconciliation),
   * unless a process that runs was started with a newer one (docs/behaviour/registry.md#replicas). `replica` names this
   * process, which from now on counts as running with this configuration; a process that ends at once gives none.
   */
  reconcile(desired: DesiredState, replica?: string): Promise<Committed<ReconcileReport>>;
  /** The process still runs. Without this for `ALIVE_MS` it does not count any more. */
  renewReplica(replica: string): Promise<void>;
  /** The process ends, and others need not stand back for its configuration. */
  removeReplica(replica: string): Promise<void>;
  /** Resolves when the store answers. */
  ping(): Promise<void>;
  /** Waits for writes that run. Idempotent. */
  close(): Promise<void>;
}

export interface SourceStore {
  /** Ascending by name. */
  listSources(): Promise<readonly StoredSource[]>;
  readSource(name: string): Promise<StoredSource | undefined>;
  /**
   * Creates or replaces a source with creation type API. New claims of a synced source reach its entries in the same
   * transaction. `created` tells which it was. Refuses a second managed source with `store/managed-exists`.
   */
  putSource(
    name: string,
    settings: SourceSettings,
    decide: DecideOnSource,
  ): Promise<Committed<{ readonly source: StoredSource; readonly created: boolean }>>;
  /** Takes the entries along. Fails with `store/source-unknown` or, while registries list it, `store/source-in-use`. */
  deleteSource(name: string, decide: DecideOnSourceDeletion): Promise<Committed<StoredSource>>;
}

export interface RegistryStore {
  /** Ascending by name. */
  listRegistries(): Promise<readonly StoredRegistry[]>;
  readRegistry(name: string): Promise<StoredRegistry | undefined>;
  /** Creates or replaces a registry with creation type API. Fails with `store/source-unknown`. */
  putRegistry(
    name: string,
    settings: RegistrySettings,
    decide: DecideOnRegistry,
  ): Promise<Committed<{ readonly registry: StoredRegistry; readonly created: boolean }>>;
  /** Fails with `registry/unknown-registry` when the decision lets an unknown name pass. */
  deleteRegistry(name: string, decide: DecideOnRegistryDeletion): Promise<Committed<StoredRegistry>>;
}

export interface EntryStore {
  /** Ascending by kind, namespace, name; versions ascending as text. All in bytewise order. */
  readEntries(source: string): Promise<readonly StoredEntry[]>;
  /**
   * Calls with the same entries in the same order, for a reader who does not need all of them together. The callback must
   * not ask the store for anything.
   */
  visitEntries(source: string, visit: (entry: StoredEntry) => void): Promise<void>;
  /** Those of the entries that exist, in the same order: what a replica reads after publishes. */
  readSomeEntries(source: string, entries: readonly EntryIdentity[]): Promise<readonly StoredEntry[]>;
  /** Entries of a kind without their documents, ascending by namespace and name. */
  listEntries(
    of: { readonly source: string; readonly kind: EntryKind },
    part: ListedPart<EntryPlace>,
  ): Promise<readonly ListedEntry[]>;
  /** Versions of a source without their documents, ascending by name, version, kind and namespace. */
  listVersions(source: string, part: ListedPart<VersionPlace>): Promise<readonly ListedVersion[]>;
  /** Entries of the managed source under an address; several only for an address without namespace. */
  findManaged(address: EntryAddress): Promise<readonly ExistingEntry[]>;
  /** Adds a version to the managed source, with its entry if it is the first. */
  publish(request: PublishRequest, decide: DecideOnPublish): Promise<Committed<PublishedVersion>>;
  /** The last version takes the entry with it. Fails with `registry/not-found` when the version is not there. */
  deleteVersion(
    address: EntryAddress,
    version: string,
    choose: ChooseEntry,
  ): Promise<Committed<DeletedVersion>>;
  /** Replaces the status of versions of the managed source. Fails with `registry/not-found` when one is not there. */
  markVersions(request: MarkRequest, choose: ChooseEntry): Promise<Committed<MarkedVersions>>;
  /** Replaces the claims of an entry of the managed source. `value` is the entry as it is now. */
  setEntryClaims(
    address: EntryAddress,
    claims: ClaimSet,
    choose: ChooseEntry,
  ): Promise<Committed<ExistingEntry>>;
}

export interface SyncStore {
  /** Makes the source hold exactly these entries and returns them as stored. Unchanged versions keep their times. */
  replaceEntries(replacement: Replacement): Promise<Committed<readonly StoredEntry[]>>;
  readStatus(source: string): Promise<SyncStatus | undefined>;
  /** By source name. */
  readStatuses(): Promise<ReadonlyMap<string, SyncStatus>>;
  /**
   * Does not count as a change: nothing that is served depends on it. A source that is gone is left alone. With a lease
   * it is refused with `store/lease-lost` when that is not held any more.
   */
  writeStatus(source: string, status: SyncStatus, lease?: Lease): Promise<void>;
  /** Takes the lease for so many milliseconds if nobody holds it; false otherwise. A holder may take it again. */
  acquireLease(lease: Lease, milliseconds: number): Promise<boolean>;
  /** The heartbeat; false when the lease has been lost, after which the work must stop. */
  renewLease(lease: Lease, milliseconds: number): Promise<boolean>;
  /** Gives up the lease, if it is held. */
  releaseLease(lease: Lease): Promise<void>;
}

/** `written` comes with commits of this process that changed single entries of the managed source. */
export type ChangeListener = (revision: Revision, written?: WrittenEntries) => void;

/**
 * Hears what a commit of this process leaves while the database still works on it: time that nobody uses otherwise. The
 * commit may fail, and the listener may hear of it without; where it hears of it, it gets the same object.
 */
export type PrepareForChange = (written: WrittenEntries) => void;

export interface ChangeFeed {
  /** What was committed after `revision`. 0 is before everything. */
  changesSince(revision: Revision): Promise<Changes>;
  /**
   * Calls back with the newest revision soon after any commit: at once in this process, below a second in others, and
   * after a lost notice within the interval of the periodic check. Also calls once soon after it was asked for, so that
   * nothing falls between a first read and this. One call may stand for many commits. The callback must not throw. The
   * returned function ends it.
   */
  onChange(listener: ChangeListener, prepare?: PrepareForChange): () => void;
}
