import { escapeIdentifier, escapeLiteral } from 'pg';
import type { PostgresPlace } from './connect.ts';
import { asMigrationUser, GROUP_ROLE } from './migrate.ts';

/** Runs the statements of `primeStatements` as the migration user, all or none. */
export async function primeDatabase(
  place: PostgresPlace,
  application: { readonly user: string; readonly login: PrimedLogin },
): Promise<void> {
  const { database, user, migrationUser = user } = place.settings;
  await asMigrationUser(place, async (client) => {
    await client.query('begin');
    for (const statement of primeStatements({ database, migrationUser, ...application }))
      await client.query(statement);
    await client.query('commit');
  });
}

export interface PrimeRequest {
  readonly database: string;
  /** Owns the tables that migrations make, now and later. */
  readonly migrationUser: string;
  /** The application's login. */
  readonly user: string;
  readonly login: PrimedLogin;
}

/** How the application will sign in. */
export type PrimedLogin =
  | { readonly kind: 'password'; readonly password: string }
  /** With tokens; Amazon RDS takes them from members of its role `rds_iam`, and no password of theirs. */
  | { readonly kind: 'rds-iam' };

/**
 * SQL that lets the application's user work in the database: a group role with the rights, and the user in it. Running it
 * again changes nothing, not even the password. Names and the password are data: nothing in them ends their place.
 */
export function primeStatements({ database, migrationUser, user, login: by }: PrimeRequest): string[] {
  const group = escapeIdentifier(GROUP_ROLE);
  const owner = escapeIdentifier(migrationUser);
  const login = escapeIdentifier(user);
  return [
    unlessRole(GROUP_ROLE, `create role ${group} nologin`),
    unlessRole(
      user,
      `create role ${login} login${by.kind === 'password' ? ` password ${escapeLiteral(by.password)}` : ''}`,
    ),
    ...(by.kind === 'rds-iam' ? [`grant rds_iam to ${login}`] : []),
    `grant connect on database ${escapeIdentifier(database)} to ${group}`,
    `grant usage on schema public to ${group}`,
    `grant create, usage on schema public to ${owner}`,
    `grant select, insert, update, delete on all tables in schema public to ${group}`,
    `alter default privileges for role ${owner} in schema public
  grant select, insert, update, delete on tables to ${group}`,
    `grant ${group} to ${login}`,
  ];
}

function unlessRole(name: string, statement: string): string {
  return anonymousBlock(`begin
  if not exists (select from pg_catalog.pg_roles where rolname = ${escapeLiteral(name)}) then
    ${statement};
  end if;
end`);
}

/** Dollar quoting ends at its tag, so the tag must be one that the text does not hold. */
function anonymousBlock(body: string): string {
  let tag = '$skep$';
  for (let number = 1; body.includes(tag); number++) tag = `$skep${number}$`;
  return `do ${tag} ${body} ${tag}`;
}
