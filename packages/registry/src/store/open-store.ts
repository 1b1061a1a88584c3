import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { NEWEST_SCHEMA, type MigrationRun, type SchemaVersion } from './schema/migrate.ts';
import { migratePostgres, postgresSchema } from './postgres/migrate.ts';
import { openPostgres, type PoolState } from './postgres/postgres.ts';
import { placeText, type PostgresPlace } from './postgres/connect.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import { translateFailures } from './database.ts';
import type { Store } from './store.ts';
import { migrateSqlite, readSqliteSchema } from './sqlite/migrate.ts';
import { createPrivately } from './sqlite/private-file.ts';
import { sqliteFailure } from './sqlite/failure.ts';

/** Where a store is kept: a file of this machine, or a database that several machines share. */
export type StorePlace =
  | { readonly kind: 'sqlite'; readonly path: string }
  | ({ readonly kind: 'postgres' } & PostgresPlace);

export interface OpenedStore extends Store {
  /** Of a store that keeps connections to a database. */
  pool?(): PoolState;
  /**
   * Since when commits have been under way, as the clock has elapsed; undefined while there are none. Of a database that
   * shares few processors with this process.
   */
  committingSince?(): number | undefined;
  /** Of a store that no other machine uses: a process that begins to serve need not wait for those of one that died. */
  forgetLeases?(): Promise<void>;
  /** Closes, and removes what this opening has made as far as that is a file: for a start that failed. */
  discard(): Promise<void>;
}

/** For people: the file, or `host:port/database`. */
export function storeText(place: StorePlace): string {
  return place.kind === 'sqlite' ? place.path : placeText(place.settings);
}

/** Opens the store that the configuration asks for, after bringing its schema up to date as the migration user. */
export async function openStore(
  place: StorePlace,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<OpenedStore> {
  if (place.kind === 'sqlite') return openSqlite({ path: place.path, clock, log });
  const { before, after } = await migratePostgres(place, (version) => Math.max(version, NEWEST_SCHEMA));
  log.info({ before, after }, before === after ? 'schema is up to date' : 'schema migrated');
  return openPostgres({ ...place, clock, log });
}

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
  const failure = (cause: unknown) => sqliteFailure(path, cause);
  return translateFailures(failure, async () => {
    using database = new DatabaseSync(path, { timeout: 1_000 });
    return await work(database);
  });
}
