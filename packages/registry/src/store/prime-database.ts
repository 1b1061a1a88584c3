import { connect, placeText, type PostgresPlace } from './postgres-connect.ts';
import { postgresFailure } from './postgres-failure.ts';
import { type PrimedLogin, primeStatements } from './prime-statements.ts';

/** Runs the statements of `primeStatements` as the migration user, all or none. */
export async function primeDatabase(
  place: PostgresPlace,
  application: { readonly user: string; readonly login: PrimedLogin },
): Promise<void> {
  const { database, user, migrationUser = user } = place.settings;
  const client = await connect(place, 'migration');
  try {
    await client.query('begin');
    for (const statement of primeStatements({ database, migrationUser, ...application }))
      await client.query(statement);
    await client.query('commit');
  } catch (cause) {
    throw postgresFailure(placeText(place.settings), cause).error;
  } finally {
    await client.end();
  }
}
