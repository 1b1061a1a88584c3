import type { ClaimLimits } from '@skep/auth/claims/claims.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Revision } from '../../store/changes.ts';
import type { EntryLimits } from '../../store/entry-limits.ts';
import type { EntryIdentity } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { DocumentLimits } from '../../sync/document-limits.ts';
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
  readonly limits: AdminLimits;
  readonly log: Log;
}

export interface AdminLimits {
  /** Bytes of the publisher's block in `_meta` of one version. */
  readonly maxMetaBytes: number;
  /** Share of invalid entries, 0 to 1, above which inline data is refused. */
  readonly maxInvalidShare: number;
  readonly documents: DocumentLimits;
  /** Of one entry that is published to. */
  readonly entry: EntryLimits;
  readonly claims: ClaimLimits;
  /** Bytes of inline data. */
  readonly maxCatalogueBytes: number;
  /**
   * Whether a source made through the API may read this file of the server's machine. Whoever manages sources could
   * otherwise publish every file that the server can read.
   */
  readonly allowsPath: (path: string) => boolean;
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
