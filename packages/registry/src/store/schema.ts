import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { MigrationRun, SchemaVersion } from './migrate.ts';
import { migratePostgres, postgresSchema } from './migrate-postgres.ts';
import { migrateSqlite, readSqliteSchema } from './migrate-sqlite.ts';
import type { StorePlace } from './open-store.ts';
import { createPrivately } from './private-file.ts';
import { sqliteFailure } from './sqlite-failure.ts';

/** The schema of a store as it is; version 0 where there is no store yet, which this does not make. */
export async function readSchema(place: StorePlace): Promise<SchemaVersion> {
  if (place.kind === 'postgres') return postgresSchema(place);
  if (!existsSync(place.path)) return { version: 0, compatibleFrom: 0 };
  return withFile(place.path, async (database) => readSqliteSchema(database));
}

/** Migrates without opening the store. Fails with `store/locked` while another process writes to an SQLite file. */
export async function migrateStore(
  place: StorePlace,
  target: (before: number) => number,
): Promise<MigrationRun> {
  if (place.kind === 'postgres') return migratePostgres(place, target);
  await mkdir(dirname(place.path), { recursive: true, mode: 0o750 });
  await createPrivately(place.path);
  return withFile(place.path, (database) => migrateSqlite(database, target));
}

async function withFile<T>(path: string, work: (database: DatabaseSync) => Promise<T>): Promise<T> {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 1_000 });
    return await work(database);
  } catch (cause) {
    throw sqliteFailure(path, cause).error;
  } finally {
    database?.close();
  }
}
