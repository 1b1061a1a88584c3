import { describe, expect, test } from 'vitest';
import type { Claims } from '@skep/auth/claims/claims.ts';
import {
  type CreationType,
  decideDelete,
  decideRead,
  decideUpdate,
  type ScopedResource,
} from './admin-scope.ts';
import { ANONYMOUS } from './authority.ts';
import { caller, claims, signedIn, superAdmin } from './callers.fixture.ts';
import { coversNew, type Decision, satisfiesExisting } from './decision.ts';

const codeOf = (decision: Decision): string => (decision.allowed ? 'allowed' : decision.code);
const platform = claims({ org: 'acme', team: 'platform' });
const data = claims({ org: 'acme', team: 'data' });
const none = claims({});
const admin = caller({ role: 'admin', org: 'acme', team: 'platform' });
const strict = caller({ role: 'admin', org: 'acme', team: 'platform' }, { preset: 'strict' });

const made = (by: CreationType, held: Claims): ScopedResource => ({ creationType: by, claims: held });

describe('reading a source or registry', () => {
  test.each([
    ['its own team', admin, platform, 'allowed'],
    ['another team is 404, not 403', admin, data, 'access/hidden'],
    ['no claims are open', admin, none, 'allowed'],
    ['no claims are 404 in strict', strict, none, 'access/hidden'],
    ['a super-admin reads all', superAdmin(), data, 'allowed'],
    ['anonymous mode reads all', ANONYMOUS, data, 'allowed'],
    ['auth-only mode reads all', signedIn({}), data, 'allowed'],
  ])('%s', (_rule, authority, held, expected) => {
    expect(codeOf(decideRead(authority, held))).toBe(expected);
  });
});

describe('creating a source or registry', () => {
  test.each([
    ['with claims it holds', admin, platform, 'allowed'],
    ['with a part of its claims', admin, claims({ org: 'acme' }), 'allowed'],
    ['with claims it does not hold', admin, data, 'access/insufficient-claims'],
    ['without claims', admin, none, 'allowed'],
    ['any claims as super-admin', superAdmin(), data, 'allowed'],
    ['any claims in auth-only mode', signedIn({}), data, 'allowed'],
    [
      'every element of a list is needed, whatever arrayMatch says',
      strict,
      claims({ team: ['platform', 'data'] }),
      'access/insufficient-claims',
    ],
  ])('%s: %#', (_rule, authority, next, expected) => {
    expect(codeOf(coversNew(authority, next))).toBe(expected);
  });
});

describe('updating a source or registry', () => {
  test.each([
    ['its own, keeping the claims', admin, made('API', platform), platform, 'allowed'],
    ['its own, dropping one of two claims', admin, made('API', platform), claims({ org: 'acme' }), 'allowed'],
    ['its own, taking a foreign claim', admin, made('API', platform), data, 'access/insufficient-claims'],
    [
      'of another team, although the new claims are held',
      admin,
      made('API', data),
      platform,
      'access/insufficient-claims',
    ],
    ['dropping the last claim', admin, made('API', platform), none, 'access/last-claim'],
    [
      'keeping a claim that asks for nothing',
      admin,
      made('API', platform),
      claims({ org: [] }),
      'access/last-claim',
    ],
    ['dropping the last claim in strict', strict, made('API', platform), none, 'access/last-claim'],
    ['dropping the last claim as super-admin', superAdmin(), made('API', platform), none, 'allowed'],
    ['dropping the last claim in auth-only mode', signedIn({}), made('API', platform), none, 'allowed'],
    ['dropping the last claim in anonymous mode', ANONYMOUS, made('API', platform), none, 'allowed'],
    ['an open one, leaving it open', admin, made('API', none), none, 'allowed'],
    ['an open one, closing it', admin, made('API', none), platform, 'allowed'],
    ['one without claims in strict', strict, made('API', none), platform, 'access/unlabeled'],
    ['one of the configuration', admin, made('CONFIG', platform), platform, 'access/config-created'],
    [
      'one of the configuration and another team',
      admin,
      made('CONFIG', data),
      platform,
      'access/config-created',
    ],
    [
      'one of the configuration as super-admin',
      superAdmin(),
      made('CONFIG', data),
      data,
      'access/config-created',
    ],
    [
      'one of the configuration in anonymous mode',
      ANONYMOUS,
      made('CONFIG', none),
      none,
      'access/config-created',
    ],
  ])('%s', (...[, authority, existing, next, expected]) => {
    expect(codeOf(decideUpdate(authority, existing, next))).toBe(expected);
  });
});

describe('deleting a source or registry', () => {
  test.each([
    ['its own', admin, made('API', platform), 'allowed'],
    ['of another team', admin, made('API', data), 'access/insufficient-claims'],
    ['an open one', admin, made('API', none), 'allowed'],
    ['one without claims in strict', strict, made('API', none), 'access/unlabeled'],
    ['of another team as super-admin', superAdmin(), made('API', data), 'allowed'],
    ['one of the configuration as super-admin', superAdmin(), made('CONFIG', none), 'access/config-created'],
  ])('%s', (_rule, authority, existing, expected) => {
    expect(codeOf(decideDelete(authority, existing))).toBe(expected);
  });
});

test('naming a source needs its claims and is 403 otherwise', () => {
  expect(codeOf(satisfiesExisting(admin, platform))).toBe('allowed');
  expect(codeOf(satisfiesExisting(admin, none))).toBe('allowed');
  expect(codeOf(satisfiesExisting(admin, data))).toBe('access/insufficient-claims');
});
