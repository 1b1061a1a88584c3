import type { Skipped } from '@skep/core/catalog/registry-file.ts';
import type { ClaimSet } from '../access/claim-set.ts';
import type { StoredEntry } from '../store/rows.ts';

/** A server as the place describes it now. The same object for as long as it says the same. */
export interface WatchedServer {
  /** What to call it where it is left out. */
  readonly name: string;
  /** A server document, JSON text. */
  readonly json: string;
  /** Its own, whatever those of the source are. */
  readonly claims: ClaimSet;
}

/** Everything that is known of a place at one moment. */
export interface WatchedState {
  readonly servers: readonly WatchedServer[];
  /** What the store holds of parts of the place that could not be read yet: it stays. */
  readonly kept: readonly StoredEntry[];
  /** What asks to be shown and is not, and why. */
  readonly skipped: readonly Skipped[];
  /** What was ignored of what is shown. */
  readonly warnings: readonly string[];
  /** Parts that cannot be followed now, a line each. What was known of them stays. */
  readonly faults: readonly string[];
  /** Every part was asked for at least once, and answered or failed. */
  readonly isTried: boolean;
  /** Every part was read at least once. */
  readonly isWhole: boolean;
}

export interface FollowOptions {
  /** What the store holds of the source. */
  readonly before: readonly StoredEntry[];
  /** The state is another one. Must not throw. */
  readonly changed: () => void;
}

/** A place that is being followed. */
export interface Following {
  readonly state: () => WatchedState;
  /** Ends it, and resolves when nothing of it runs. Idempotent. */
  readonly close: () => Promise<void>;
}

/** A place that tells what changes, for as long as it is followed. Owned by the synchronisation. */
export interface WatchedSource {
  readonly follow: (options: FollowOptions) => Promise<Following>;
}
