import { describe, expect, test } from 'vitest';
import { parseClaims, type RawClaims } from './claims.ts';
import { resolveRoles, traceRole } from './roles.ts';

// docs/behaviour/registry.md#roles, row by row.
const rows: [rule: string, maps: unknown[], token: RawClaims, granted: boolean][] = [
  ['a text matches', [{ role: 'admin' }], { role: 'admin' }, true],
  ['a text matches one of the token list', [{ role: 'admin' }], { role: ['admin', 'x'] }, true],
  ['a list matches any of its elements', [{ role: ['admin', 'ops'] }], { role: 'ops' }, true],
  ['two lists match where they intersect', [{ role: ['a', 'b'] }], { role: ['b', 'c'] }, true],
  ['every key of a map must match', [{ role: 'admin', org: 'acme' }], { role: 'admin' }, false],
  ['any map grants', [{ a: '1x' }, { b: '2x' }], { b: '2x' }, true],
  ['an empty map never matches', [{}], { role: 'admin' }, false],
  ['an empty map does not spoil its neighbour', [{}, { a: 'x' }], { a: 'x' }, true],
  ['no maps grant nothing', [], { role: 'admin' }, false],
  ['a number is not its text', [{ level: '3' }], { level: 3 }, false],
  ['true is not its text', [{ admin: 'true' }], { admin: true }, false],
  ['null is nothing', [{ admin: 'null' }], { admin: null }, false],
  ['an empty list in the rule matches nothing', [{ groups: [] }], { groups: ['x'] }, false],
  ['an empty list in the token matches nothing', [{ groups: 'x' }], { groups: [] }, false],
  ['a dotted key is literal', [{ 'realm_access.roles': 'x' }], { realm_access: { roles: ['x'] } }, false],
  ['an inherited key is no claim', [{ constructor: 'Object' }], {}, false],
  ['nor is an inherited text', [{ role: 'admin' }], Object.create({ role: 'admin' }), false],
];

describe('a role', () => {
  test.each(rows)('%s', (_rule, maps, token, granted) => {
    const rules = { manageEntries: maps.map((map) => parseClaims(map)) };
    expect(resolveRoles({ claims: token }, rules)).toEqual(granted ? ['manageEntries'] : []);
  });

  test('is listed in fixed order and superAdmin does not expand', () => {
    const admin = [parseClaims({ role: 'admin' })];
    const god = [parseClaims({ role: 'god' })];
    const rules = { manageEntries: admin, manageRegistries: admin, manageSources: admin, superAdmin: god };
    expect(resolveRoles({ claims: { role: ['admin', 'god'] } }, rules)).toEqual([
      'superAdmin',
      'manageSources',
      'manageRegistries',
      'manageEntries',
    ]);
    expect(resolveRoles({ claims: { role: 'god' } }, rules)).toEqual(['superAdmin']);
  });

  test('is not granted by a provider that may not grant it, whatever its tokens say', () => {
    const rules = {
      superAdmin: [parseClaims({ role: 'root' })],
      manageEntries: [parseClaims({ role: 'root' })],
    };
    const caller = { claims: { role: 'root' }, grantable: ['manageEntries'] as const };
    expect(resolveRoles(caller, rules)).toEqual(['manageEntries']);
    expect(traceRole(caller, rules, 'superAdmin')).toMatchObject({
      granted: false,
      mismatches: [{ reason: 'not-of-this-provider' }],
    });
    expect(resolveRoles({ ...caller, grantable: [] }, rules)).toEqual([]);
  });

  test('is granted to nobody without rules', () => {
    expect(resolveRoles({ claims: { role: 'admin' } }, {})).toEqual([]);
  });
});

describe('traceRole', () => {
  const rules = { superAdmin: [{}, { role: 'god', org: 'acme' }].map((map) => parseClaims(map)) };

  test('names the map that granted', () => {
    expect(traceRole({ claims: { role: 'god', org: 'acme' } }, rules, 'superAdmin')).toEqual({
      role: 'superAdmin',
      granted: true,
      rule: 1,
    });
  });

  test('names the first failing key of each map', () => {
    expect(traceRole({ claims: { role: 'god' } }, rules, 'superAdmin')).toEqual({
      role: 'superAdmin',
      granted: false,
      mismatches: [{ reason: 'empty-rule' }, { reason: 'no-shared-value', key: 'org', wanted: ['acme'] }],
    });
  });
});
