import type { Client } from 'pg';
import {
  migrateTo,
  type MigrationRun,
  type SchemaConnection,
  type SchemaVersion,
} from '../schema/migrate.ts';
import { POSTGRES_WORDS } from '../schema/migrations.ts';
import { connect, placeText, postgresFailure, type PostgresPlace } from './connect.ts';

/** Chosen once; all replicas and every version must agree on it. */
const MIGRATION_LOCK = 7_302_511;

/**
 * Runs migrations as the migration user, in one transaction under an advisory lock: of replicas that start together one
 * migrates and the others find it done. What it creates is granted to the application's group role, if there is one.
 */
export async function migratePostgres(
  place: PostgresPlace,
  target: (before: number) => number,
): Promise<MigrationRun> {
  return asMigrationUser(place, async (client) => {
    await client.query('begin');
    await client.query('set local statement_timeout = 0; set local lock_timeout = 0');
    await client.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    const run = await migrateTo(schemaConnection(client), target);
    await client.query('commit');
    return run;
  });
}

/** The schema as the migration user sees it, without changing anything. */
export async function postgresSchema(place: PostgresPlace): Promise<SchemaVersion> {
  return asMigrationUser(place, readVersion);
}

/** Closing a connection in a transaction takes the transaction back. */
export async function asMigrationUser<T>(
  place: PostgresPlace,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await connect(place, 'migration');
  try {
    return await work(client);
  } catch (cause) {
    throw postgresFailure(placeText(place.settings), cause);
  } finally {
    await client.end();
  }
}

function schemaConnection(client: Client): SchemaConnection {
  return {
    words: POSTGRES_WORDS,
    execute: async (statement) => void (await client.query(statement)),
    readVersion: () => readVersion(client),
    writeVersion: async ({ version, compatibleFrom }) => {
      await client.query(`create table if not exists schema_version (
        id bigint primary key check (id = 1), version bigint not null, compatible_from bigint not null)`);
      await client.query(
        `insert into schema_version (id, version, compatible_from) values (1, $1, $2)
         on conflict (id) do update set version = excluded.version, compatible_from = excluded.compatible_from`,
        [version, compatibleFrom],
      );
      await grantToApplication(client);
    },
  };
}

export async function readVersion(client: Pick<Client, 'query'>): Promise<SchemaVersion> {
  const known = await client.query(`select to_regclass('schema_version') is not null as known`);
  if (known.rows[0]?.known !== true) return { version: 0, compatibleFrom: 0 };
  const { rows } = await client.query('select version, compatible_from from schema_version');
  return {
    version: Number(rows[0]?.version ?? 0),
    compatibleFrom: Number(rows[0]?.compatible_from ?? 0),
  };
}

/** The group role of `prime-db`. Without it the user who migrates also serves, or grants rights in another way. */
export const GROUP_ROLE = 'skep_registry';

async function grantToApplication(client: Client): Promise<void> {
  const { rows } = await client.query('select 1 from pg_roles where rolname = $1', [GROUP_ROLE]);
  if (rows.length === 0) return;
  const tables = await client.query(
    `select quote_ident(tablename) as name from pg_tables where schemaname = current_schema() and tableowner = current_user`,
  );
  for (const { name } of tables.rows) {
    await client.query(`grant select, insert, update, delete on ${name} to ${GROUP_ROLE}`);
  }
}
