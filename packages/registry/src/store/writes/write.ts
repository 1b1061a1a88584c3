import type { Kysely } from 'kysely';
import type { ChangedEntry, WrittenSource } from '../changes.ts';
import type { Tables } from '../schema/tables.ts';

export type Change =
  | { readonly subject: 'source' | 'registry'; readonly name: string }
  | { readonly subject: 'entry'; readonly entry: ChangedEntry };

/** A write transaction that runs: its connection, and what it has changed so far. */
export interface Write {
  readonly db: Kysely<Tables>;
  readonly locksRows: boolean;
  /** RFC 3339 UTC. */
  readonly now: string;
  readonly lockAdministration: () => Promise<void>;
  /** Must be called before the first statement that changes something; `left` is what it will make of a source. */
  readonly record: (change: Change, left?: WrittenSource) => void;
}

/** Work of one transaction. It may run more than once; what it does besides the transaction must bear that. */
export type Work<T> = (write: Write) => Promise<T>;

/** One statement outside of transactions, at a time in milliseconds since 1970. */
export interface Moment {
  readonly db: Kysely<Tables>;
  readonly now: number;
}
