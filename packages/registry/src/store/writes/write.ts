import type { Kysely } from 'kysely';
import type { WrittenSource } from '../changes.ts';
import type { ChangeLogTable, Tables } from '../schema/tables.ts';

/** A row of the change log; one of a source or registry needs no more than its name. */
export type Change = Pick<ChangeLogTable, 'subject' | 'name'> & Partial<Omit<ChangeLogTable, 'revision'>>;

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
