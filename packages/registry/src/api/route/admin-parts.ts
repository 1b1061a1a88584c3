import type { Log } from '@skep/core/log/log.ts';
import type { Revision } from '../../store/changes.ts';
import type { EntryIdentity } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Ingest } from '../../sync/ingest.ts';

/** What the endpoints that write may use, and those that read what only the store has. */
export interface AdminParts {
  readonly store: Store;
  /** Resolves when every read of this process sees the commit of that revision. */
  readonly applied: (revision: Revision) => Promise<void>;
  /** Whether this process serves such an entry, of whichever source. */
  readonly serves: (identity: EntryIdentity) => boolean;
  readonly sync: SourceSync;
  /** Reads inline data before it is taken; large data in a thread of its own. */
  readonly ingest: Ingest;
  readonly log: Log;
}

/** Synchronisation, as far as the admin API steers it. */
export interface SourceSync {
  /**
   * A source was made, replaced or deleted. A first look at it starts at once; for inline data, which needs no
   * waiting, the promise resolves when its entries are stored.
   */
  sourceChanged(name: string): Promise<void>;
  /** Starts a synchronisation now, unless one runs. */
  syncNow(name: string): Promise<void>;
}
