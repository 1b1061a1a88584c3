import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { primeStatements } from './prime-statements.ts';

const REQUEST = { database: 'registry', migrationUser: 'mig', user: 'app', password: "it's $skep$" };

describe('primeStatements', () => {
  it('doubles quotes and keeps dollar tags apart', () => {
    const [, login] = primeStatements(REQUEST);
    expect(login).toBe(`do $skep1$ begin
  if not exists (select from pg_catalog.pg_roles where rolname = 'app') then
    create role "app" login password 'it''s $skep$';
  end if;
end $skep1$`);
  });

  it('never lets a name or a password end its block early', () => {
    const hostile = fc.string({
      unit: fc.constantFrom('$', 'skep', '1', "'", '"', ';', '\\', 'a', ' '),
      maxLength: 12,
    });
    fc.assert(
      fc.property(hostile, hostile, (user, password) => {
        for (const statement of primeStatements({ ...REQUEST, user, password })) {
          const tag = /^do (\$skep\d*\$) /.exec(statement)?.[1];
          if (tag !== undefined) expect(statement.split(tag)).toHaveLength(3);
        }
      }),
    );
  });
});
