import { SkepError } from '@skep/core/errors/skep-error.ts';
import { MIGRATIONS, type SqlWords } from './migrations.ts';

/** Schema of a store: how many migrations it has seen, and the oldest program that may use it. */
export interface SchemaVersion {
  readonly version: number;
  readonly compatibleFrom: number;
}

/** One connection to a database inside a transaction that keeps other migrations out. */
export interface SchemaConnection {
  readonly words: SqlWords;
  /** Runs one statement. */
  execute(statement: string): Promise<void>;
  /** Version 0 for an empty database. */
  readVersion(): Promise<SchemaVersion>;
  writeVersion(version: SchemaVersion): Promise<void>;
}

export const NEWEST_SCHEMA = MIGRATIONS.length;

/** What a run has done: `before` equals `after` when there was nothing to do. */
export interface MigrationRun {
  readonly before: number;
  readonly after: number;
}

/** Number of the schema that a migration run ends at; 0 steps up are all there are. */
export function migrationTarget(version: number, direction: 'up' | 'down', steps: number): number {
  if (direction === 'down') return Math.max(0, version - steps);
  return steps === 0 ? NEWEST_SCHEMA : Math.min(NEWEST_SCHEMA, version + steps);
}

/**
 * Takes the schema to version `target`, step by step in the transaction of the connection. Fails with `store/newer` when
 * the store has seen migrations that this program does not know: it could not take them back either.
 */
export async function migrateTo(
  connection: SchemaConnection,
  target: (before: number) => number,
): Promise<MigrationRun> {
  const { version: before } = await connection.readVersion();
  const after = target(before);
  if (after === before) return { before, after };
  if (before > NEWEST_SCHEMA) throw newerSchema(before);
  for (const migration of MIGRATIONS.slice(before, after)) {
    for (const statement of migration.up(connection.words)) await connection.execute(statement);
  }
  for (const migration of MIGRATIONS.slice(after, before).toReversed()) {
    for (const statement of migration.down(connection.words)) await connection.execute(statement);
  }
  const compatibleFrom = MIGRATIONS[after - 1]?.compatibleFrom ?? 0;
  await connection.writeVersion({ version: after, compatibleFrom });
  return { before, after };
}

/**
 * Refuses an older schema (`store/older`), because queries would miss columns, and a newer one (`store/newer`) unless its
 * last migration says that it only added.
 */
export function checkSchema({ version, compatibleFrom }: SchemaVersion): void {
  if (version > NEWEST_SCHEMA && compatibleFrom > NEWEST_SCHEMA) throw newerSchema(version);
  if (version < NEWEST_SCHEMA) {
    throw new SkepError('store/older', {
      message: `the store has schema ${version}, this version needs ${NEWEST_SCHEMA}`,
    });
  }
}

function newerSchema(version: number): SkepError {
  return new SkepError('store/newer', {
    message: `the store has schema ${version}, this version knows ${NEWEST_SCHEMA}`,
  });
}
