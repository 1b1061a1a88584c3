import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Log } from '@skep/core/log/log.ts';
import { Kysely, sql, type RawBuilder, type SqlBool } from 'kysely';
import type { Clock } from '@skep/core/time/clock.ts';
import { ChangeFeed } from '../change-feed.ts';
import { type Database, translateFailures } from '../database.ts';
import { checkSchema, NEWEST_SCHEMA } from '../schema/migrate.ts';
import { migrateSqlite, readSqliteSchema } from './migrate.ts';
import { nodeSqliteDialect } from './dialect.ts';
import { readRevision, recordChanges } from '../writes/revisions.ts';
import { createPrivately, warnOfOtherReaders, IN_MEMORY } from './private-file.ts';
import { isBusy, sqliteFailure } from './failure.ts';
import { sqlStore } from '../store.ts';
import type { Tables } from '../schema/tables.ts';
import { WalFlush } from './wal-flush.ts';
import type { Revision } from '../changes.ts';
import { type EntryBatch, insertBatch } from '../writes/entry-batch.ts';

export interface SqliteOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
}

export type SqliteStore = Awaited<ReturnType<typeof openSqlite>>;

/** SQLite tells other processes nothing, so they poll; one row of a file that is in memory anyway. */
const CHECK_EVERY_MS = 1_000;
/** How long to wait for another process that writes. */
const PATIENCE_MS = 5_000;
const RETRY_MS = 20;

/**
 * Opens the embedded store, creating file (for its owner only) and directory as needed, and brings its schema up to date.
 * Several processes of one machine may share the file; their writes take turns (`store/locked` when a turn takes too long),
 * and each sees the others' changes within a second. Fails with `store/newer` for a file of a later version.
 */
export async function openSqlite({ path, clock, log }: SqliteOptions) {
  const failure = (cause: unknown) => sqliteFailure(path, cause);
  const { files, isNew } = await translateFailures(failure, async () => {
    if (path !== IN_MEMORY) await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    const isNew = path !== IN_MEMORY && (await createPrivately(path));
    return { files: await openFiles(path, clock), isNew };
  });
  if (path !== IN_MEMORY) await warnOfOtherReaders(path, log);
  const database = sqliteDatabase(path, files, clock);
  const feed = new ChangeFeed({
    clock,
    log,
    checkEvery: CHECK_EVERY_MS,
    readRevision: () => readRevision(database.reader),
  });
  const store = sqlStore({ database, feed, clock });
  return {
    ...store,
    /** Ends all leases: those of a killed process would delay the first synchronisation. Other processes begin anew. */
    forgetLeases: async (): Promise<void> => {
      const forget = () => database.writer.deleteFrom('sync_lease').execute();
      await translateFailures(database.failure, () => patiently(clock, forget));
    },
    /** Closes, and removes the file if this opening has made it and nobody else has it open: for a start that failed. */
    discard: async (): Promise<void> => {
      await store.close();
      // The last connection takes the log away: where it lies there, another process has opened the file meanwhile.
      if (isNew && !existsSync(`${path}-wal`)) await rm(path, { force: true });
    },
  };
}

interface Files {
  readonly writing: DatabaseSync;
  /** The same as `writing` for a store in memory, which has one connection. */
  readonly reading: DatabaseSync;
}

async function openFiles(path: string, clock: Clock): Promise<Files> {
  const writing = new DatabaseSync(path, { enableForeignKeyConstraints: true, timeout: 0 });
  try {
    // normal: a flush at checkpoints only; before acknowledging there is one in another thread, see WalFlush.
    await patiently(clock, () => writing.exec('pragma journal_mode = wal; pragma synchronous = normal'));
    await patiently(clock, () => migrateSqlite(writing, (before) => Math.max(before, NEWEST_SCHEMA)));
    checkSchema(readSqliteSchema(writing));
    const reading = path === IN_MEMORY ? writing : new DatabaseSync(path, { readOnly: true, timeout: 0 });
    return { writing, reading };
  } catch (error) {
    writing.close();
    throw error;
  }
}

function sqliteDatabase(path: string, { writing, reading }: Files, clock: Clock): Database {
  const writer = new Kysely<Tables>({ dialect: nodeSqliteDialect(writing) });
  const reader = reading === writing ? writer : new Kysely<Tables>({ dialect: nodeSqliteDialect(reading) });
  const wal = path === IN_MEMORY ? undefined : new WalFlush(path);
  // Immediate: a transaction that reads first and writes later could otherwise lose its turn in the middle.
  const begin = async (connection: Kysely<Tables>): Promise<void> =>
    void (await patiently(clock, () => sql`begin immediate`.execute(connection)));
  return {
    writer,
    reader,
    eachRow: async (query, visit) => {
      for await (const row of query.stream()) visit(row);
    },
    begin,
    beginManaged: async (connection, read) => {
      await begin(connection);
      return (await read.execute(connection)).rows;
    },
    commitBatch,
    among,
    locksRows: false,
    answersAtCommit: false,
    lockAdministration: async () => {},
    announce: async () => {},
    flush: async () => wal?.flush(),
    failure: (cause) => sqliteFailure(path, cause),
    ping: async () => void reading.prepare('select 1').get(),
    close: async () => {
      await wal?.close();
      // The writer last: only it can fold the log into the file and take the log away. Kysely closes only what it has used.
      if (reader !== writer) await reader.destroy();
      if (reading !== writing && reading.isOpen) reading.close();
      await writer.destroy();
      for (const file of [reading, writing]) if (file.isOpen) file.close();
    },
  };
}

/** Waits for another process without stopping this one, which SQLite's own waiting would do. */
async function patiently<T>(clock: Clock, work: () => T | Promise<T>): Promise<T> {
  for (let waited = 0; ; waited += RETRY_MS) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || waited >= PATIENCE_MS) throw error;
    }
    await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve));
  }
}

/** See the port: the texts travel as one. */
export function among(column: RawBuilder<string>, texts: readonly string[]): RawBuilder<SqlBool> {
  return sql`${column} in (select value from json_each(${JSON.stringify(texts)}))`;
}

/** The batch and its revision, one statement after the other: for a database in this process. */
export async function commitBatch(db: Kysely<Tables>, batch: EntryBatch): Promise<Revision> {
  await insertBatch(db, batch);
  const { source, changed } = batch;
  const revision = await recordChanges(
    db,
    changed.map((entry) => ({ subject: 'entry', source, ...entry })),
  );
  await sql`commit`.execute(db);
  return revision;
}
