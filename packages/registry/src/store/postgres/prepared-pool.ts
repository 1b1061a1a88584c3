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
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => preparingClient(await pool.connect()),
  };
}

function preparingClient(client: PoolClient): PostgresPoolClient {
  function query<R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query(text: unknown, values: readonly unknown[] = []): unknown {
    if (typeof text !== 'string') throw new SkepError('internal/bug', { message: 'no cursor was asked for' });
    return send(client, text, values);
  }
  return { query, release: (destroy) => client.release(destroy) };
}

async function send(client: PoolClient, text: string, values: readonly unknown[]): Promise<unknown> {
  const messages = text.split(AND_AT_ONCE).map((part) => part.trim());
  const sent = messages.map((message): Promise<unknown> => {
    const name = MARK.exec(message)?.[1];
    if (name !== undefined) return client.query({ name, text: message, values: [...values] });
    return messages.length === 1 ? client.query(message, [...values]) : client.query(message);
  });
  const outcomes = await Promise.allSettled(sent);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return sent[messages.findIndex((message) => MARK.test(message))] ?? sent[0];
}
