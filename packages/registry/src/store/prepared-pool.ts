import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type { Pool, PoolClient } from 'pg';

/** What begins the text of a statement that each connection is to keep prepared. */
const MARK = /^\/\* prepared: ([a-z-]+) \*\//u;

/** The pool for Kysely: statements that say so stay prepared, and of several in one text the last one's rows count. */
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
    const name = MARK.exec(text)?.[1];
    const query = { text, values: [...values], ...(name === undefined ? {} : { name }) };
    const result: unknown = await this.#client.query(query);
    return Array.isArray(result) ? result.at(-1) : result;
  }
}
