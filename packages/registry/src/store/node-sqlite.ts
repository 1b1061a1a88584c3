import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { type Dialect, SqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely';

/** Lets Kysely speak to Node's own SQLite: the same statements as its other drivers, one prepared per query text. */
export function nodeSqliteDialect(database: DatabaseSync): Dialect {
  return new SqliteDialect({ database: adapt(database) });
}

function adapt(database: DatabaseSync): SqliteDatabase {
  return {
    prepare: (sql) => adaptStatement(database.prepare(sql)),
    close: () => database.close(),
  };
}

function adaptStatement(statement: StatementSync): SqliteStatement {
  return {
    // Only statements that return rows have columns.
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...parameters.map(bindable)),
    run: (parameters) => statement.run(...parameters.map(bindable)),
    iterate: (parameters) => statement.iterate(...parameters.map(bindable)),
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
