import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { primeStatements } from './prime-database.ts';

const REQUEST = { database: 'registry', migrationUser: 'mig', user: 'app' };
const PASSWORD = { kind: 'password', password: "it's $skep$" } as const;

describe('primeStatements', () => {
  test('doubles quotes and keeps dollar tags apart', () => {
    const [, login] = primeStatements({ ...REQUEST, login: PASSWORD });
    expect(login).toBe(`do $skep1$ begin
  if not exists (select from pg_catalog.pg_roles where rolname = 'app') then
    create role "app" login password 'it''s $skep$';
  end if;
end $skep1$`);
  });

  test('makes a login without a password, and its membership, for tokens', () => {
    const statements = primeStatements({ ...REQUEST, login: { kind: 'rds-iam' } });
    expect(statements[1]).toContain('create role "app" login;');
    expect(statements[2]).toBe('grant rds_iam to "app"');
    expect(primeStatements({ ...REQUEST, login: PASSWORD }).join('\n')).not.toContain('rds_iam');
  });

  test('never lets a name or a password end its block early', () => {
    const hostile = fc.string({
      unit: fc.constantFrom('$', 'skep', '1', "'", '"', ';', '\\', 'a', ' '),
      maxLength: 12,
    });
    fc.assert(
      fc.property(hostile, hostile, (user, password) => {
        for (const statement of primeStatements({
          ...REQUEST,
          user,
          login: { kind: 'password', password },
        })) {
          const tag = /^do (\$skep\d*\$) /.exec(statement)?.[1];
          if (tag !== undefined) expect(statement.split(tag)).toHaveLength(3);
        }
      }),
    );
  });
});
