import type { DatabaseSync } from 'node:sqlite';
import {
  migrateTo,
  type MigrationRun,
  type SchemaConnection,
  type SchemaVersion,
} from '../schema/migrate.ts';
import { SQLITE_WORDS } from '../schema/migrations.ts';

/**
 * The schema version of a file is SQLite's own `user_version`, which every program of ours has read since the first. The
 * oldest program that may use the schema stands in a table, from the second on.
 */
export function readSqliteSchema(database: DatabaseSync): SchemaVersion {
  const version = Number(database.prepare('pragma user_version').get()?.['user_version'] ?? 0);
  const known = database.prepare(`select 1 from sqlite_schema where name = 'schema_version'`).get();
  if (known === undefined) return { version, compatibleFrom: version };
  const row = database.prepare('select compatible_from from schema_version').get();
  return { version, compatibleFrom: Number(row?.['compatible_from'] ?? version) };
}

/** Runs migrations in one transaction that keeps every other writer out (docs/behaviour/registry.md#migrations). */
export async function migrateSqlite(
  database: DatabaseSync,
  target: (before: number) => number,
): Promise<MigrationRun> {
  database.exec('begin immediate');
  try {
    const run = await migrateTo(schemaConnection(database), target);
    database.exec('commit');
    return run;
  } catch (error) {
    if (database.isTransaction) database.exec('rollback');
    throw error;
  }
}

function schemaConnection(database: DatabaseSync): SchemaConnection {
  return {
    words: SQLITE_WORDS,
    execute: async (statement) => database.exec(statement),
    readVersion: async () => readSqliteSchema(database),
    writeVersion: async ({ version, compatibleFrom }) => {
      database.exec(`pragma user_version = ${version}`);
      database.exec('create table if not exists schema_version (compatible_from integer not null) strict');
      database.exec('delete from schema_version');
      database.prepare('insert into schema_version (compatible_from) values (?)').run(compatibleFrom);
    },
  };
}
