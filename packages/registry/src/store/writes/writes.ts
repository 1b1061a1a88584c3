import { setImmediate } from 'node:timers/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { sql, type Kysely } from 'kysely';
import type { Committed, Revision, WrittenEntries, WrittenSource } from '../changes.ts';
import type { ChangeFeed } from '../change-feed.ts';
import type { Database, Change, Work } from '../database.ts';
import { KnownRows } from './managed-rows.ts';
import { ManagedEntries, type EntryWork, type Finished, type Ground } from './managed-entries.ts';
import { recordChanges } from './revisions.ts';
import type { Tables } from '../schema/tables.ts';

export interface WritesOptions {
  readonly database: Database;
  /** RFC 3339 UTC. */
  readonly now: () => string;
  /** Hears of each commit that changes something before it is made, and when it is durable. */
  readonly feed: Pick<ChangeFeed, 'hold' | 'told' | 'check' | 'newest'>;
}

/** One try and this many repetitions when others were faster. */
const REPETITIONS = 3;
/** At most this many publishes share one commit: enough to hide the disk, few enough to answer the first ones soon. */
const MAX_BATCH = 64;

/** How long a commit may wait for the company that the one before had, milliseconds. */
const GATHER_MS = 2;

interface Waiting {
  readonly work: EntryWork<void>;
  readonly resolve: (revision: Revision) => void;
  readonly reject: (reason: unknown) => void;
}

interface Done<T> {
  readonly value: T;
  readonly revision: Revision;
  readonly changed: boolean;
  readonly written?: WrittenEntries | WrittenSource | undefined;
  /** See ChangeFeed.hold. */
  readonly release: () => void;
}

/**
 * Runs transactions that write. Small ones that arrive while another commits share the next commit (group commit): a disk
 * that needs 5 ms for a flush then takes thousands of publishes a second and not 200.
 */
export class Writes {
  readonly #options: WritesOptions;
  readonly #waiting: Waiting[] = [];
  readonly #running = new Set<Promise<unknown>>();
  readonly #known = new KnownRows();
  #draining = false;
  #lastBatch = 0;
  #gathering: { readonly expected: number; readonly resolve: () => void } | undefined;
  #closed = false;

  constructor(options: WritesOptions) {
    this.#options = options;
  }

  /** One transaction of its own, repeated when it lost against others (`store/conflict` after four tries). */
  async alone<T>(work: Work<T>): Promise<Committed<T>> {
    this.#assertOpen();
    return this.#track(this.#repeated(() => this.#commit(work)));
  }

  /** A transaction that may be shared with others like it. */
  async shared<T>({ act, ...about }: EntryWork<T>): Promise<Committed<T>> {
    this.#assertOpen();
    const { promise, resolve, reject } = Promise.withResolvers<Committed<T>>();
    let settle: (revision: Revision) => void = () => reject(new SkepError('internal/bug'));
    this.#waiting.push({
      work: {
        ...about,
        act: async (managed) => {
          const value = await act(managed);
          settle = (revision) => resolve({ revision, value });
        },
      },
      resolve: (revision) => settle(revision),
      reject,
    });
    if (this.#gathering !== undefined && this.#waiting.length >= this.#gathering.expected)
      this.#gathering.resolve();
    if (!this.#draining) void this.#track(this.#drain());
    return promise;
  }

  /** Waits for what runs and refuses what comes. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  #assertOpen(): void {
    if (this.#closed) throw new SkepError('store/failed', { message: 'the store is closed' });
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    try {
      while (this.#waiting.length > 0) {
        // Requests that arrived together get to the queue before the transaction begins.
        if (this.#options.database.answersAtCommit) await this.#gather(this.#lastBatch);
        else await setImmediate();
        const batch = this.#waiting.splice(0, MAX_BATCH);
        this.#lastBatch = batch.length;
        await this.#batch(batch);
      }
    } finally {
      this.#draining = false;
    }
  }

  /**
   * Waits a moment until as much has arrived as shared the commit before: those that it answered come back, and would
   * otherwise fall into two halves of which each waits for the other's commit.
   */
  async #gather(expected: number): Promise<void> {
    if (this.#waiting.length >= expected) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gathering = { expected, resolve };
    const enough = setTimeout(resolve, GATHER_MS);
    await promise;
    clearTimeout(enough);
    this.#gathering = undefined;
  }

  async #batch(batch: readonly Waiting[]): Promise<void> {
    const refused = new Map<Waiting, unknown>();
    const works = batch.map(({ work }) => work);
    let done: Done<void>;
    try {
      done = await this.#commitEntries(works, async (managed) => {
        refused.clear();
        for (const waiting of batch) {
          const before = managed.changes;
          try {
            await waiting.work.act(managed);
          } catch (error) {
            // A refusal before the first change leaves the transaction usable for the others; anything else ends it.
            if (managed.changes > before || !(error instanceof SkepError)) throw error;
            refused.set(waiting, error);
          }
        }
      });
    } catch (cause) {
      await this.#separately(batch, this.#options.database.failure(cause));
      return;
    }
    const { revision } = done;
    const settle = (): void => {
      for (const waiting of batch) {
        if (refused.has(waiting)) waiting.reject(refused.get(waiting));
        else waiting.resolve(revision);
      }
    };
    // The next transaction need not wait until this one is on the disk; only the answers do.
    void this.#track(
      this.#durable(done).then(settle, (error: unknown) => {
        for (const waiting of batch) waiting.reject(error);
      }),
    );
  }

  /** One of them broke the transaction of all. Alone, each gets the error that is its own, or its repetitions. */
  async #separately(batch: readonly Waiting[], error: SkepError): Promise<void> {
    // Without an answer nobody knows whether it was committed: a second try could refuse its own first one.
    if (error.code === 'store/unavailable') return batch.forEach(({ reject }) => reject(error));
    await Promise.all(
      batch.map(({ work, resolve, reject }) =>
        this.#repeated(() => this.#commitEntries([work], async (managed) => work.act(managed))).then(
          ({ revision }) => resolve(revision),
          reject,
        ),
      ),
    );
  }

  async #repeated<T>(commit: () => Promise<Done<T>>): Promise<Committed<T>> {
    for (let repetition = 0; ; repetition++) {
      try {
        const done = await commit();
        await this.#durable(done);
        return { revision: done.revision, value: done.value };
      } catch (cause) {
        const error = this.#options.database.failure(cause);
        if (error.code !== 'store/conflict' || repetition === REPETITIONS) throw error;
      }
    }
  }

  async #durable({ changed, revision, written, release }: Done<unknown>): Promise<void> {
    const { database, feed } = this.#options;
    try {
      if (!changed) return;
      await database.flush();
      feed.told(revision, written);
    } catch (cause) {
      throw database.failure(cause);
    } finally {
      release();
    }
  }

  #commit<T>(work: Work<T>): Promise<Done<T>> {
    const { database, now } = this.#options;
    return this.#transaction(async (db, committing) => {
      await database.begin(db);
      const changes: Change[] = [];
      let written: WrittenSource | undefined;
      const value = await work({
        db,
        now: now(),
        locksRows: database.locksRows,
        lockAdministration: () => database.lockAdministration(db),
        record: (change, left) => {
          changes.push(change);
          written = left;
        },
      });
      const revision = await recordChanges(db, changes);
      const changed = changes.length > 0;
      if (changed) await database.announce(db, revision);
      committing();
      await sql`commit`.execute(db);
      return { value, revision, changed, written };
    });
  }

  /** Of works on managed entries, whatever they change. */
  async #commitEntries<T>(
    works: readonly EntryWork<unknown>[],
    act: (managed: ManagedEntries) => Promise<T>,
  ): Promise<Done<T>> {
    const { database, now } = this.#options;
    const soon = await this.#commitKnown(works, act).catch((cause: unknown) => {
      // What else went wrong shows when it is done in full. Without an answer it may be done already.
      if (database.failure(cause).code === 'store/unavailable') throw cause;
      return undefined;
    });
    if (soon !== undefined) return soon;
    return this.#transaction(async (db, committing) => {
      const managed = await ManagedEntries.begin({ db, database, now: now(), committing }, works);
      return this.#left(managed, { value: await act(managed), ...(await managed.commit()) });
    });
  }

  /** Without reading anything, where everything is known. Undefined, with nothing done, where it is not. */
  async #commitKnown<T>(
    works: readonly EntryWork<unknown>[],
    act: (managed: ManagedEntries) => Promise<T>,
  ): Promise<Done<T> | undefined> {
    const { database, feed, now } = this.#options;
    const rows = database.commitAt === undefined ? undefined : this.#known.about(works, feed.newest);
    if (rows === undefined) return undefined;
    const { release, done } = await this.#held(async (committing) => {
      const managed = new ManagedEntries({ db: database.writer, database, now: now(), committing }, rows);
      const value = await act(managed);
      const finished = await managed.commitKnown();
      return { done: finished === undefined ? undefined : this.#left(managed, { value, ...finished }) };
    });
    if (done !== undefined) return { ...done, release };
    release();
    return undefined;
  }

  #left<T>({ rows }: ManagedEntries, finished: Finished & { readonly value: T }): Omit<Done<T>, 'release'> {
    const done = { ...finished, changed: finished.written !== undefined };
    this.#known.left(rows, done);
    return done;
  }

  #transaction<T>(
    run: (db: Kysely<Tables>, committing: Ground['committing']) => Promise<Omit<Done<T>, 'release'>>,
  ): Promise<Done<T>> {
    return this.#options.database.writer.connection().execute((db) =>
      this.#held(async (committing) => {
        try {
          return await run(db, committing);
        } catch (error) {
          await rollBack(db);
          throw error;
        }
      }),
    );
  }

  /** Holds notices back from the moment in which a commit is sent; see ChangeFeed.hold. */
  async #held<D extends object>(
    run: (committing: Ground['committing']) => Promise<D>,
  ): Promise<D & Pick<Done<unknown>, 'release'>> {
    const { feed } = this.#options;
    let release: (() => void) | undefined;
    try {
      const done = await run((written) => (release = feed.hold(written)));
      return { ...done, release: () => release?.() };
    } catch (error) {
      if (release !== undefined) {
        release();
        // Nobody knows whether it was committed.
        void feed.check();
      }
      throw error;
    }
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }
}

/** The error that made it necessary matters; that a lost connection cannot roll back does not. */
async function rollBack(db: Kysely<Tables>): Promise<void> {
  try {
    await sql`rollback`.execute(db);
  } catch {
    // A broken connection is thrown away by its pool, and the database rolls back what it held.
  }
}
