import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkShape } from './check-shape.ts';
import { corsShape } from '../config/cors.ts';
import { DEFAULT_LIMITS, type Limits, limitsShape } from './limits.ts';
import { pathText } from './problem.ts';

const problemsOf = (shape: typeof limitsShape | typeof corsShape, value: unknown): string[] => {
  const checked = checkShape(shape, value);
  return 'problems' in checked
    ? checked.problems.map(({ path, message }) => `${pathText(path)}: ${message}`)
    : [];
};

describe('the limits', () => {
  test.each<[value: object, problem: string]>([
    [{ pageSize: { max: 0 } }, 'pageSize.max: must be a whole number from 1 to 10000'],
    [{ pageSize: { max: 10_001 } }, 'pageSize.max: must be a whole number from 1 to 10000'],
    [{ pageSize: { default: 1.5 } }, 'pageSize.default: must be a whole number from 1 to 10000'],
    [{ pageSize: { default: 20, max: 10 } }, 'pageSize.default: must not be more than max (10)'],
    [{ bundlePageSize: { default: 3, max: 2 } }, 'bundlePageSize.default: must not be more than max (2)'],
    [{ maxBodySize: 1023 }, 'maxBodySize: must be a whole number from 1024 to 1073741824'],
    [{ maxBodySise: 2048 }, 'maxBodySise: unknown key "maxBodySise"; did you mean "maxBodySize"?'],
    [{ maxMetaSize: 0 }, 'maxMetaSize: must be a whole number from 1'],
    [{ maxCatalogueSize: 1023 }, 'maxCatalogueSize: must be a whole number from 1024 to 268435456'],
    [{ maxCatalogueSize: 268_435_457 }, 'maxCatalogueSize: must be a whole number from 1024 to 268435456'],
    [{ apiSource: { maxPages: 0 } }, 'apiSource.maxPages: must be a whole number from 1 to 100000'],
    [{ apiSource: { maxServers: 0 } }, 'apiSource.maxServers: must be a whole number from 1 to 1000000'],
    [{ claims: { maxKeys: 0 } }, 'claims.maxKeys: must be a whole number from 1 to 1024'],
    [{ claims: { maxValues: 0 } }, 'claims.maxValues: must be a whole number from 1 to 10000'],
    [{ claims: { maxTextSize: 65_537 } }, 'claims.maxTextSize: must be a whole number from 1 to 65536'],
    [{ requestTimeout: '999ms' }, 'requestTimeout: must be at least 1s'],
    [{ requestTimeout: '5m1s' }, 'requestTimeout: must not exceed 5m0s'],
    [{ requestTimeout: '0s' }, 'requestTimeout: must be a positive duration such as "5m", not "0s"'],
  ])('refuse %j', (value, problem) => {
    expect(problemsOf(limitsShape, value)).toEqual([problem]);
  });

  test('of sources are the documented ones by default', () => {
    expect(DEFAULT_LIMITS).toMatchObject({
      maxCatalogueSize: 104_857_600,
      apiSource: { maxPages: 1000, maxServers: 100_000 },
    });
    const limits = { maxCatalogueSize: 2048, apiSource: { maxPages: 2, maxServers: 3 } };
    expect(limitsShape.parse(limits)).toMatchObject(limits);
  });

  test.each([
    [undefined, 10_000],
    ['1s', 1000],
    ['5m', 300_000],
  ])('with requestTimeout %s give a request %i milliseconds', (requestTimeout, expected) => {
    expect(problemsOf(limitsShape, { requestTimeout })).toEqual([]);
    expect(limitsShape.parse({ requestTimeout }).requestTimeout).toBe(expected);
  });

  test.each([
    [undefined, { default: 30, max: 1000 }],
    [{ max: 10 }, { default: 10, max: 10 }],
    [{ default: 5 }, { default: 5, max: 1000 }],
    [{ default: 2000 }, { default: 2000, max: 2000 }],
    [
      { default: 7, max: 9 },
      { default: 7, max: 9 },
    ],
  ])('with pageSize %j make pages %j', (pageSize, expected) => {
    expect(problemsOf(limitsShape, { pageSize })).toEqual([]);
    expect(limitsShape.parse({ pageSize }).pageSize).toEqual(expected);
  });
});

test.each(Object.keys(limitsShape.unwrap().shape))(
  'the row of limits.%s is all that its limit needs',
  (name) => {
    const keys = new Map(Object.entries<unknown>(DEFAULT_LIMITS));
    const { properties, required } = z.toJSONSchema(limitsShape, { io: 'input', unrepresentable: 'any' });
    const row = properties?.[name];
    // Nobody has to write a limit, and what holds without it stands in the reference page.
    expect(required ?? []).not.toContain(name);
    const isDocumented = typeof row === 'object' && ('default' in row || name === 'requestRate');
    expect(isDocumented).toBe(true);
    expect(keys.has(name) || name === 'requestRate').toBe(true);
    expect(Object.isFrozen(keys.get(name))).toBe(true);
  },
);

test('the limits are frozen', () => {
  expect(Object.isFrozen(DEFAULT_LIMITS)).toBe(true);
  const given: Limits = limitsShape.parse({ pageSize: { max: 10 } });
  expect([given, given.pageSize].every((one) => Object.isFrozen(one))).toBe(true);
});

describe('the allowed origins', () => {
  test.each<[origins: unknown[], problem: string]>([
    [[], 'allowedOrigins: must hold at least one origin; leave cors out to allow none'],
    [['*', 'https://a.example'], 'allowedOrigins: "*" allows every origin, so no other may stand beside it'],
    [
      ['https://a.example/'],
      'allowedOrigins[0]: must be "*" or an origin such as "https://app.example", not "https://a.example/"; did you mean "https://a.example"?',
    ],
    [
      ['HTTPS://A.example:443'],
      'allowedOrigins[0]: must be "*" or an origin such as "https://app.example", not "HTTPS://A.example:443"; did you mean "https://a.example"?',
    ],
    [['null'], 'allowedOrigins[0]: must be "*" or an origin such as "https://app.example", not "null"'],
    [
      ['https://*.example'],
      'allowedOrigins[0]: must be "*" or an origin such as "https://app.example", not "https://*.example"',
    ],
    [
      ['file:///x'],
      'allowedOrigins[0]: must be "*" or an origin such as "https://app.example", not "file:///x"',
    ],
  ])('refuse %j', (allowedOrigins, problem) => {
    expect(problemsOf(corsShape, { allowedOrigins })).toEqual([problem]);
  });

  test('are every origin or some, remembered for ten minutes', () => {
    expect(corsShape.parse({ allowedOrigins: ['*'] })).toEqual({ allowedOrigins: '*', maxAge: 600 });
    const allowedOrigins = ['https://a.example', 'http://localhost:5173'];
    expect(problemsOf(corsShape, { allowedOrigins, maxAge: '1h' })).toEqual([]);
    expect(corsShape.parse({ allowedOrigins, maxAge: '1h' })).toEqual({ allowedOrigins, maxAge: 3600 });
  });
});
