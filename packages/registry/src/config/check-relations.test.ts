import { describe, expect, test } from 'vitest';
import { claimProblems } from './check-relations.ts';
import { draftOf } from '../shape/draft.ts';
import { pathText } from '../shape/problem.ts';
import { configShape } from './shape.ts';

/** A configuration that has these claims wherever there can be some. */
const config = (claims: unknown, limits?: unknown): unknown => ({
  sources: [{ name: 'one', managed: {}, claims }],
  registries: [
    { name: 'all', sources: ['one'] },
    { name: 'some', sources: ['one'], claims },
  ],
  auth: { authz: { roles: { superAdmin: [claims], manageSources: [{ r: 'x' }, claims] } } },
  ...(limits === undefined ? {} : { limits: { claims: limits } }),
});

const PLACES = [
  'sources[0].claims',
  'registries[1].claims',
  'auth.authz.roles.superAdmin[0]',
  'auth.authz.roles.manageSources[1]',
];

const problemsOf = (value: unknown): string[] =>
  claimProblems(draftOf(configShape, value) ?? {}).map(
    ({ path, message }) => `${pathText(path)}: ${message}`,
  );

const keys = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));
const values = (count: number): object => ({ org: Array.from({ length: count }, String) });
const text = (bytes: number): object => ({ org: 'x'.repeat(bytes) });

describe('claims of a configuration', () => {
  test.each<[limits: unknown, within: object, beyond: object, problem: string]>([
    [undefined, keys(64), keys(65), ': claims have 65 keys, at most 64 are allowed'],
    [{ maxKeys: 2 }, keys(2), keys(3), ': claims have 3 keys, at most 2 are allowed'],
    [{ maxKeys: 70 }, keys(70), keys(71), ': claims have 71 keys, at most 70 are allowed'],
    [
      undefined,
      values(256),
      values(257),
      '.org: claim "org": array has 257 elements, at most 256 are allowed',
    ],
    [
      { maxValues: 2 },
      values(2),
      values(3),
      '.org: claim "org": array has 3 elements, at most 2 are allowed',
    ],
    [
      { maxValues: 300 },
      values(300),
      values(301),
      '.org: claim "org": array has 301 elements, at most 300 are allowed',
    ],
    [undefined, text(1024), text(1025), '.org: claim "org": value is too long'],
    [{ maxTextSize: 4 }, text(4), text(5), '.org: claim "org": value is too long'],
    [{ maxTextSize: 2000 }, text(2000), text(2001), '.org: claim "org": value is too long'],
    // Limits that are wrong themselves are reported by the shape; nothing is open for that.
    [{ maxKeys: 0 }, keys(64), keys(65), ': claims have 65 keys, at most 64 are allowed'],
    [[], keys(64), keys(65), ': claims have 65 keys, at most 64 are allowed'],
  ])('are held to limits.claims %j', (limits, within, beyond, problem) => {
    expect(problemsOf(config(within, limits))).toEqual([]);
    expect(problemsOf(config(beyond, limits))).toEqual(PLACES.map((place) => `${place}${problem}`));
  });

  test.each([null, 'org', ['org'], 5])('are a map, not %j', (claims) => {
    const message = 'claims must be a map of strings or arrays of strings';
    expect(problemsOf(config(claims))).toEqual(PLACES.map((place) => `${place}: ${message}`));
  });

  test.each([null, [], { sources: 5, registries: [5], auth: { authz: null }, limits: 5 }, { auth: 5 }])(
    'are none where the rest is not readable: %j',
    (value) => {
      expect(problemsOf(value)).toEqual([]);
    },
  );
});
