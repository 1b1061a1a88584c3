import { describe, expect, test } from 'vitest';
import { checkShape } from '../shape/check-shape.ts';
import { databaseShape, resolvedDatabase, storePlace } from './database.ts';
import { pathText } from '../shape/problem.ts';

const PLACE = { host: 'db', port: 5432, database: 'registry', user: 'app' };
const HOST = { env: {}, home: '/', platform: 'linux' } as const;
const dynamicAuth = { awsRdsIam: { region: 'detect' } };

const problemsOf = (value: object): string[] => {
  const checked = checkShape(databaseShape, { ...PLACE, ...value });
  return 'problems' in checked
    ? checked.problems.map(({ path, message }) => `${pathText(path)}: ${message}`)
    : [];
};

describe('a login with a cloud identity', () => {
  test.each<[value: object, problem: string]>([
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

  test('is refused where the token would travel in the clear', () => {
    const clear =
      'sslMode: must be require, verify-ca or verify-full with database.dynamicAuth: no token may travel in the clear';
    for (const sslMode of ['disable', 'prefer'])
      expect(problemsOf({ dynamicAuth, sslMode })).toEqual([clear]);
    for (const sslMode of ['require', 'verify-ca', 'verify-full'])
      expect(problemsOf({ dynamicAuth, sslMode })).toEqual([]);
    expect(problemsOf({ sslMode: 'disable', password: 'x' })).toEqual([]);
    expect(problemsOf({ dynamicAuth, sslMode: 'disable', password: 'x' })).toHaveLength(2);
  });

  test('is how every connection is made, and nothing is without it', () => {
    const place = (value: object) => {
      const database = resolvedDatabase(databaseShape.parse({ ...PLACE, ...value }), '/');
      return storePlace({ database }, HOST);
    };
    expect(place({ dynamicAuth })).toMatchObject({ kind: 'postgres', token: expect.any(Function) });
    expect(place({ password: 'x' })).not.toHaveProperty('token');
  });
});
