import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type { Pool, PoolClient } from 'pg';

/** What begins the text of a statement that each connection is to keep prepared. */
const MARK = /^\/\* prepared: ([a-z-]+) \*\//u;

/** Stands between two messages that are sent together: neither waits for the answer to the other. */
export const AND_AT_ONCE = '/* and at once */';

/**
 * The pool for Kysely. A statement that says so stays prepared. Of messages that are sent together the prepared one has the
 * parameters and gives the rows; the first that fails is what is thrown.
 */
export function preparedPool(pool: Pool): PostgresPool {
  // One for each connection: Kysely knows it again by this.
  const known = new WeakMap<PoolClient, PreparingClient>();
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => {
      const client = await pool.connect();
      const preparing = known.get(client) ?? new PreparingClient(client);
      known.set(client, preparing);
      return preparing;
    },
  };
}

class PreparingClient implements PostgresPoolClient {
  readonly #client: PoolClient;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  query<R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  query(text: unknown, values: readonly unknown[] = []): unknown {
    if (typeof text !== 'string') throw new SkepError('internal/bug', { message: 'no cursor was asked for' });
    return this.#send(text, values);
  }

  release(destroy?: boolean): void {
    this.#client.release(destroy);
  }

  async #send(text: string, values: readonly unknown[]): Promise<unknown> {
    const messages = text.split(AND_AT_ONCE).map((part) => part.trim());
    const sent = messages.map((message) => this.#sendOne(message, values, messages.length === 1));
    const outcomes = await Promise.allSettled(sent);
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return sent[messages.findIndex((message) => MARK.test(message))] ?? sent[0];
  }

  #sendOne(text: string, values: readonly unknown[], isAlone: boolean): Promise<unknown> {
    const name = MARK.exec(text)?.[1];
    if (name !== undefined) return this.#client.query({ name, text, values: [...values] });
    return isAlone ? this.#client.query(text, [...values]) : this.#client.query(text);
  }
}
