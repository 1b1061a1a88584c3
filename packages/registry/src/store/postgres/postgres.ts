import { availableParallelism } from 'node:os';
import type { Log } from '@skep/core/log/log.ts';
import { Kysely, PostgresDialect, sql, type RawBuilder, type SqlBool } from 'kysely';
import { Pool } from 'pg';
import type { Clock } from '@skep/core/time/clock.ts';
import { ChangeFeed } from '../change-feed.ts';
import type { Database, RowQuery } from '../database.ts';
import { checkSchema } from '../schema/migrate.ts';
import { readVersion } from './migrate.ts';
import { beginManaged, commitAt, commitBatch, type BatchRow, type SendBatch } from './batch.ts';
import {
  connect,
  connectionConfig,
  EndingClient,
  placeText,
  postgresFailure,
  type PostgresPlace,
} from './connect.ts';
import { CHANNEL, PostgresNotices } from './notices.ts';
import { MAX_CONNECTIONS, sharesProcessors } from './settings.ts';
import { preparedPool } from './prepared-pool.ts';
import { readRevision } from '../writes/revisions.ts';
import { sqlStore } from '../store.ts';
import type { Tables } from '../schema/tables.ts';

export interface PostgresOptions extends PostgresPlace {
  readonly clock: Clock;
  readonly log: Log;
  /** Those that this process may use; the machine says by default. */
  readonly processors?: number;
}

/** Connections at one moment. */
export interface PoolState {
  readonly max: number;
  readonly total: number;
  readonly idle: number;
  /** Work that waits for a connection. */
  readonly waiting: number;
}

/** A lost notice is found within five seconds, which leaves two for the answer and a busy machine. */
const CHECK_EVERY_MS = 3_000;
/** Of a query whose rows are read one after the other; a few megabytes. */
const ROWS_AT_ONCE = 2_000;
/** Chosen once; see lockAdministration of the port. */
const ADMINISTRATION_LOCK = 7_302_512;

/**
 * Opens the store in a PostgreSQL database (14 and later) as the application's user, beside any number of processes. Its
 * schema must be there already (`store/older`, see migratePostgres) and one that this program can use (`store/newer`).
 */
export async function openPostgres(options: PostgresOptions) {
  const { clock, log, settings, processors = availableParallelism() } = options;
  const place = placeText(settings);
  const pool = await openPool(options);
  // One that listens hears of its own commit together with the answer to it. Another one would be woken for that, as would
  // the process behind it, while the answer is on its way.
  const database = postgresDatabase(
    pool,
    place,
    (statement) => notices.query<BatchRow>(statement) ?? pool.query<BatchRow>(statement),
  );
  try {
    checkSchema(await readVersion(pool));
  } catch (cause) {
    await pool.end();
    throw postgresFailure(place, cause);
  }
  const readRevisionHere = () => readRevision(database.reader);
  const feed = new ChangeFeed({ clock, log, checkEvery: CHECK_EVERY_MS, readRevision: readRevisionHere });
  const notices = new PostgresNotices({ connect: () => connect(options, 'app'), feed, clock, log });
  await notices.listen();
  const close = async (): Promise<void> => {
    await notices.close();
    await database.close();
  };
  const store = sqlStore({ database: { ...database, close }, feed, clock });
  return {
    ...store,
    ...(sharesProcessors(settings, processors) ? { committingSince: () => feed.heldSince } : {}),
    pool: (): PoolState => ({
      max: pool.options.max,
      total: pool.totalCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
    discard: store.close,
  };
}

/** Connections for statements of any kind. Each is given up when it does not answer. */
export async function openPool(options: Omit<PostgresOptions, 'clock'>): Promise<Pool> {
  const { maxOpenConns, maxIdleConns, connMaxLifetime } = options.settings;
  const max = maxOpenConns ?? MAX_CONNECTIONS;
  const pool = new Pool({
    ...(await connectionConfig(options, 'app')),
    Client: EndingClient,
    // What is sent together is answered together; Kysely sends one statement after the other all the same.
    pipeline: true,
    max,
    min: Math.min(maxIdleConns ?? 0, max),
    ...(connMaxLifetime === undefined ? {} : { maxLifetimeSeconds: Math.ceil(connMaxLifetime / 1000) }),
  });
  const lost = (error: Error): void => options.log.debug({ err: error }, 'lost a database connection');
  // The pool replaces a connection that broke, and who uses one hears of it from their statement. Without listeners, on
  // the pool for idle connections and on each for those in use, the same news would end the process.
  pool.on('error', lost);
  pool.on('connect', (client) => client.on('error', lost));
  return pool;
}

function postgresDatabase(pool: Pool, place: string, sendCommit: SendBatch): Database {
  const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: preparedPool(pool) }) });
  return {
    writer: kysely,
    reader: kysely,
    eachRow: (query, visit) => eachRow(kysely, query, visit),
    // Rows that are judged are locked, so the weakest isolation is enough; named, because servers have other defaults.
    begin: async (connection) => void (await sql`begin isolation level read committed`.execute(connection)),
    beginManaged,
    commitBatch,
    commitAt: (batch, current) => commitAt(sendCommit, batch, current),
    among: (column, texts): RawBuilder<SqlBool> => sql`${column} = any(${texts}::text[])`,
    locksRows: true,
    answersAtCommit: true,
    lockAdministration: async (connection) =>
      void (await sql`select pg_advisory_xact_lock(${ADMINISTRATION_LOCK})`.execute(connection)),
    announce: async (connection, revision) =>
      void (await sql`select pg_notify(${CHANNEL}, ${revision})`.execute(connection)),
    // Committing waits for the disk, unless the server was told otherwise.
    flush: async () => {},
    failure: (cause) => postgresFailure(place, cause),
    ping: async () => void (await pool.query('select 1')),
    close: () => kysely.destroy(),
  };
}

/** By a cursor, which sees what was committed when it was declared, and lives in a transaction. */
async function eachRow<Row>(
  db: Kysely<Tables>,
  query: RowQuery<Row>,
  visit: (row: Row) => void,
): Promise<void> {
  await db.transaction().execute(async (connection) => {
    await sql`declare each_row no scroll cursor for ${query}`.execute(connection);
    for (let isLast = false; !isLast;) {
      const { rows } = await sql<Row>`fetch ${sql.lit(ROWS_AT_ONCE)} from each_row`.execute(connection);
      for (const row of rows) visit(row);
      isLast = rows.length < ROWS_AT_ONCE;
    }
  });
}
