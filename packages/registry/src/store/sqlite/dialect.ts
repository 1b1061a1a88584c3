import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { type Dialect, SqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely';
import { LRUCache } from 'lru-cache';

/** Statements that stay prepared; a batch of publishes has another text for each number of rows. */
const MAX_CACHED_STATEMENTS = 100;

/** Lets Kysely speak to Node's own SQLite: the same statements as its other drivers, one prepared per query text. */
export function nodeSqliteDialect(database: DatabaseSync): Dialect {
  return new SqliteDialect({ database: adapt(database) });
}

function adapt(database: DatabaseSync): SqliteDatabase {
  const cached = new LRUCache<string, SqliteStatement>({ max: MAX_CACHED_STATEMENTS });
  return {
    prepare: (sql) => {
      const known = cached.get(sql);
      if (known !== undefined) return known;
      const statement = adaptStatement(database, sql);
      cached.set(sql, statement);
      return statement;
    },
    close: () => database.close(),
  };
}

function adaptStatement(database: DatabaseSync, sql: string): SqliteStatement {
  const statement: StatementSync = database.prepare(sql);
  return {
    // Only statements that return rows have columns.
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...parameters.map(bindable)),
    run: (parameters) => statement.run(...parameters.map(bindable)),
    // Its own: rows that are still being read would end when the cached one is run again.
    iterate: (parameters) => database.prepare(sql).iterate(...parameters.map(bindable)),
  };
}

/** SQLite binds text, numbers, bytes and null; anything else is a defect of the query. */
function bindable(value: unknown): SQLInputValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') {
    return value;
  }
  if (value instanceof Uint8Array) return value;
  throw new TypeError(`cannot bind a ${typeof value} to an SQLite statement`);
}
