import type { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Kysely, RawBuilder, SelectQueryBuilder, SqlBool } from 'kysely';
import type { Revision, WrittenSource } from './changes.ts';
import type { EntryBatch } from './writes/entry-batch.ts';
import type { Tables, ChangeLogTable } from './schema/tables.ts';

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

/** Does the work, and says in our words what went wrong. */
export async function translateFailures<T>(
  failure: Database['failure'],
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw failure(cause);
  }
}

/** A query that gives such rows, from whichever tables. */
export type RowQuery<Row> = Pick<SelectQueryBuilder<Tables, keyof Tables, Row>, 'stream' | 'toOperationNode'>;

/** What a database product does in its own way; everything else about storing is written once, on top of this. */
export interface Database {
  /** For statements that write. */
  readonly writer: Kysely<Tables>;
  /** Sees what has been committed, and does not wait for writers. */
  readonly reader: Kysely<Tables>;
  /**
   * Visits each row of a query on `reader`, all as they are at one moment, and never holds more than a few of them. `visit`
   * must not ask the store for anything, which may have to wait for it.
   */
  readonly eachRow: <Row>(query: RowQuery<Row>, visit: (row: Row) => void) => Promise<void>;
  /** Opens a write transaction on the connection. */
  begin(connection: Kysely<Tables>): Promise<void>;
  /** Opens a write transaction, locks the row of the managed source, and gives the rows of the query as they are then. */
  beginManaged<Row>(connection: Kysely<Tables>, read: RawBuilder<Row>): Promise<readonly Row[]>;
  /** Writes the batch as the next revision, commits, and tells other processes. Roll back where it fails. */
  commitBatch(connection: Kysely<Tables>, batch: EntryBatch): Promise<Revision>;
  /**
   * One statement and a transaction of its own: writes the batch as the revision after `current`, which proves that what
   * was known then still holds. Undefined, with nothing written, where that is not the newest one. Absent where reading
   * costs no wait.
   */
  commitAt?(batch: EntryBatch, current: Revision): Promise<Revision | undefined>;
  /** Whether a column is one of the texts; the same statement however many they are, so that it stays prepared. */
  among(column: RawBuilder<string>, texts: readonly string[]): RawBuilder<SqlBool>;
  /** Makes reads of rows that are about to be judged keep them as they are until the transaction ends. */
  readonly locksRows: boolean;
  /** One at a time: changes of sources and registries, which judge several rows together. Ends with the transaction. */
  lockAdministration(connection: Kysely<Tables>): Promise<void>;
  /** Tells other processes, when and if the transaction commits. */
  announce(connection: Kysely<Tables>, revision: Revision): Promise<void>;
  /** Whether a commit is durable when it returns, so that waiting callers are answered before the next one begins. */
  readonly answersAtCommit: boolean;
  /** Resolves when everything committed so far survives a power cut. */
  flush(): Promise<void>;
  /** Whatever the driver threw, in our words; `store/conflict` where the same work may succeed if it is simply repeated. */
  readonly failure: (cause: unknown) => SkepError;
  ping(): Promise<void>;
  close(): Promise<void>;
}
