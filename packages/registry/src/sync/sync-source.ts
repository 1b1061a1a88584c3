import { decodeSource } from '../sources/open-source.ts';
import type { Source } from '../sources/source.ts';
import type { Revision } from '../store/changes.ts';
import type { StoredSource, SyncStatus } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Lease } from '../store/writes/leases.ts';
import type { Limits } from '../shape/limits.ts';
import { contentHash, contentKey, knownBytes } from './content-hash.ts';
import type { Ingest } from './ingest.ts';
import { syncSucceeded } from './status.ts';

export interface SyncParts {
  readonly store: Store;
  readonly ingest: Ingest;
  /** Makes reads of this process see the commit. */
  readonly apply: (revision: Revision) => Promise<void>;
  /** RFC 3339 UTC. */
  readonly now: () => string;
  /** Those in force now. */
  readonly limits: () => Limits;
}

/** One synchronisation that somebody holds the lease for. */
export interface SyncTask {
  readonly stored: StoredSource;
  readonly source: Source;
  readonly lease: Lease;
  /** As it was before; its hash tells what the store holds. */
  readonly before: SyncStatus;
  /** When the next one is due, RFC 3339 UTC; null for sources that are read once. */
  readonly nextSync: () => string | null;
  /** Runs what takes memory and a thread, when it is its turn. */
  readonly inTurn: <T>(read: () => Promise<T>) => Promise<T>;
}

/**
 * Fetch, compare, read, store, then serve (docs/behaviour/registry.md#synchronisation); returns the status that the
 * store has now. Until the store has committed, callers see the data before; a failure at any step leaves it as it was.
 * Content that is known already causes no write but that of the status.
 */
export async function syncSource(parts: SyncParts, task: SyncTask, signal: AbortSignal): Promise<SyncStatus> {
  const { store, ingest, apply, now } = parts;
  const limits = parts.limits();
  const { stored, source, lease, before, nextSync, inTurn } = task;
  const key = contentKey(stored, limits);
  const known = knownBytes(key, before.contentHash);
  const content = await source.fetch(signal, known);
  const finished = { nextSync: nextSync(), filterHash: key.filter };
  if (content === undefined || content.hash === known) {
    const hash = contentHash(key, known ?? '');
    const status = syncSucceeded(before, { ...finished, now: now(), changed: false, contentHash: hash });
    await store.writeStatus(stored.name, status, lease);
    return status;
  }
  return inTurn(async () => {
    signal.throwIfAborted();
    const { bytes } = content;
    const { format, filter, mayBeEmpty } = decodeSource(stored);
    const input = { bytes, label: source.label, claims: stored.claims, limits, mayBeEmpty, format, filter };
    const { entries, report } = await ingest(input, signal);
    const at = now();
    const hash = contentHash(key, content.hash);
    const status = syncSucceeded(before, { ...finished, now: at, changed: true, report, contentHash: hash });
    const { revision } = await store.replaceEntries({ source: stored.name, entries, at, status, lease });
    await apply(revision);
    return status;
  });
}
