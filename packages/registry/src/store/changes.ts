import type { EntryIdentity, StoredEntry } from './rows.ts';

/** Counts commits that change what is served, over all replicas. What is visible at a revision never changes later. */
export type Revision = number;

export interface ChangedEntry extends EntryIdentity {
  readonly source: string;
}

/** What a commit of this process left of the entries that it changed, which spares reading them back. */
export interface WrittenEntries {
  readonly source: string;
  readonly changed: readonly EntryIdentity[];
  /** Those of them that exist now. */
  readonly entries: readonly StoredEntry[];
}

/** What a commit of this process made a source hold, and nothing else. */
export interface WrittenSource {
  readonly source: string;
  readonly changed: 'all';
  readonly entries: readonly StoredEntry[];
}

/** What somebody who has read everything at one revision has to read again to be at `revision`. */
export type Changes =
  | {
      readonly kind: 'some';
      readonly revision: Revision;
      /** Sources of which everything may be different: settings, claims, entries, existence. */
      readonly sources: readonly string[];
      readonly registries: readonly string[];
      /** Single entries of other sources. */
      readonly entries: readonly ChangedEntry[];
    }
  /** The record does not reach back so far. */
  | { readonly kind: 'everything'; readonly revision: Revision };

/** What a write left behind, and the revision at which it is visible to everyone. */
export interface Committed<T> {
  readonly revision: Revision;
  readonly value: T;
}
