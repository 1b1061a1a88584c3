import { describe, expect, it } from 'vitest';
import { checkShape } from './check-shape.ts';
import type { RegistryConfig } from './config.ts';
import { databaseShape, resolvedDatabase } from './database.ts';
import { pathText } from './problem.ts';
import { assertLogin, unavailable } from './unavailable.ts';

const PLACE = { host: 'db', port: 5432, database: 'registry', user: 'app' };
const dynamicAuth = { awsRdsIam: { region: 'detect' } };

const problemsOf = (value: object): string[] => {
  const checked = checkShape(databaseShape, { ...PLACE, ...value });
  return 'problems' in checked
    ? checked.problems.map(({ path, message }) => `${pathText(path)}: ${message}`)
    : [];
};

describe('a login with a cloud identity', () => {
  it.each<[value: object, problem: string]>([
    [
      { dynamicAuth, password: 'x' },
      'password: database.password and database.dynamicAuth are mutually exclusive',
    ],
    [
      { dynamicAuth, migrationPassword: 'x' },
      'migrationPassword: database.migrationPassword and database.dynamicAuth are mutually exclusive',
    ],
    [{ dynamicAuth: {} }, 'dynamicAuth.awsRdsIam: is required (a map of members)'],
    [{ dynamicAuth: { awsRdsIam: {} } }, 'dynamicAuth.awsRdsIam.region: is required (a text)'],
    [
      { dynamicAuth: { awsRdsIam: { regoin: 'x', region: 'y' } } },
      'dynamicAuth.awsRdsIam.regoin: unknown key "regoin"; did you mean "region"?',
    ],
  ])('is checked: %j', (value, problem) => {
    expect(problemsOf(value)).toEqual([problem]);
  });

  it('is valid by itself, and refused by whatever would use it', () => {
    expect(problemsOf({ dynamicAuth })).toEqual([]);
    const database = resolvedDatabase({ ...PLACE, dynamicAuth }, '/');
    const config = { sources: [], database } as unknown as RegistryConfig;
    expect(() => assertLogin(config)).toThrow(/database\.dynamicAuth: .* not available yet/);
    expect(unavailable(config).map(({ code }) => code)).toEqual(['usage/not-available']);
  });
});

it('names every source that is not read yet, and nothing of a plain configuration', () => {
  const plain = { sources: [{ name: 'files', kind: 'file' }] } as unknown as RegistryConfig;
  expect(unavailable(plain)).toEqual([]);
  expect(() => assertLogin(plain)).not.toThrow();
  const sources = ['a', 'b'].map((name) => ({ name, kind: 'kubernetes' }));
  expect(unavailable({ sources } as unknown as RegistryConfig).map(({ message }) => message)).toEqual([
    'source "a": kubernetes sources are not available yet',
    'source "b": kubernetes sources are not available yet',
  ]);
});
