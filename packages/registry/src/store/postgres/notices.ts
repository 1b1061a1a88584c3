import type { Log } from '@skep/core/log/log.ts';
import type { Client, QueryConfig, QueryResult, QueryResultRow } from 'pg';
import type { Clock } from '@skep/core/time/clock.ts';
import type { ChangeFeed } from '../change-feed.ts';
import { LOCK_MS } from './connect.ts';

/** One channel a database; the payload is the revision. */
export const CHANNEL = 'skep_registry';

const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;
/** Well below what firewalls and address translation keep a silent connection for. */
const FRESH_MS = 30_000;
/** Longer than the server lets a statement wait for two locks. */
const ANSWER_MS = 2 * LOCK_MS + 5_000;

export interface NoticesOptions {
  readonly connect: () => Promise<Client>;
  readonly feed: ChangeFeed;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Listens on a connection of its own and hands revisions to the feed. A lost connection is made again, with growing
 * pauses; what was missed meanwhile the feed finds by polling, and once more right after a new connection stands.
 */
export class PostgresNotices {
  readonly #options: NoticesOptions;
  #client: Client | undefined;
  #connecting: Promise<void> | undefined;
  #cancelPause: (() => void) | undefined;
  #pause = FIRST_PAUSE_MS;
  #heardAt = 0;
  #isAsked = false;
  #closed = false;

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /**
   * Sends a statement on the connection that listens. Undefined where another one is better: while one is under way, and
   * where nothing was heard of it lately, for it may have been cut without a word. One that was cut meanwhile is given up
   * after a while; the system would wait a quarter of an hour, and all publishes with it.
   */
  query<Row extends QueryResultRow>(statement: QueryConfig): Promise<QueryResult<Row>> | undefined {
    const client = this.#client;
    // A clock that was put back tells nothing.
    const isFresh = Math.abs(this.#now() - this.#heardAt) < FRESH_MS;
    if (client === undefined || this.#isAsked || !isFresh) return undefined;
    this.#isAsked = true;
    const giveUp = (): void => this.#lost(client, new Error('no answer to a statement'));
    const { cancel } = this.#options.clock.after(ANSWER_MS, giveUp);
    return client.query<Row>(statement).finally(() => {
      cancel();
      this.#isAsked = false;
    });
  }

  /** Resolves when it listens or has failed to; failing is not final. */
  listen(): Promise<void> {
    return (this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    }));
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPause?.();
    const client = this.#client;
    this.#client = undefined;
    // Before what is being connected: the server may never answer that it listens.
    await client?.end();
    await this.#connecting;
  }

  #now(): number {
    return this.#options.clock.now();
  }

  async #connect(): Promise<void> {
    const { connect, feed, log } = this.#options;
    try {
      const client = await connect();
      if (this.#closed) return await client.end();
      this.#client = client;
      client.on('notification', ({ payload }) => {
        this.#heardAt = this.#now();
        feed.heard(Number(payload));
      });
      client.on('error', (error) => this.#lost(client, error));
      client.on('end', () => this.#lost(client, undefined));
      await client.query(`listen ${CHANNEL}`);
      this.#pause = FIRST_PAUSE_MS;
      this.#heardAt = this.#now();
      void feed.check();
    } catch (error) {
      if (this.#closed) return;
      if (this.#client !== undefined) return this.#lost(this.#client, error);
      log.warn({ err: error }, 'cannot listen for changes of other replicas; looking for them instead');
      this.#later();
    }
  }

  #lost(client: Client, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#heardAt = 0;
    this.#options.log.warn({ err: error }, 'lost the connection that tells of changes of other replicas');
    // It may only be the listening that failed. Callers who wait for an answer on it hear that there will be none.
    void client.end().catch(() => {});
    this.#later();
  }

  #later(): void {
    if (this.#closed) return;
    this.#cancelPause = this.#options.clock.after(this.#pause, () => void this.listen()).cancel;
    this.#pause = Math.min(2 * this.#pause, MAX_PAUSE_MS);
  }
}
