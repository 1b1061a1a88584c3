import { describe, expect, test } from 'vitest';
import { ROLES } from '@skep/auth/claims/roles.ts';
import { ANONYMOUS } from './authority.ts';
import { caller, claims, RULES, signedIn, superAdmin } from './callers.fixture.ts';
import type { Decision } from './decision.ts';
import { decideGate, decideRole } from './gate.ts';

const codeOf = (decision: Decision): string => (decision.allowed ? decision.reason : decision.code);
const acme = claims({ org: 'acme' });

describe('the registry gate', () => {
  test.each([
    ['anonymous mode opens every registry', ANONYMOUS, acme, 'authz-off'],
    ['auth-only mode opens every registry', signedIn({}), acme, 'authz-off'],
    ['a super-admin passes whatever the claims', superAdmin(), claims({ org: 'other' }), 'super-admin'],
    ['matching claims pass', caller({ org: 'acme' }), acme, 'claims-covered'],
    ['other claims are 403', caller({ org: 'contoso' }), acme, 'access/insufficient-claims'],
    ['missing claims are 403', caller({}), acme, 'access/insufficient-claims'],
    ['a registry without claims is open', caller({}), claims({}), 'unlabeled-is-open'],
    ['strict: it is closed', caller({}, { unlabeled: 'deny' }), claims({}), 'access/unlabeled'],
    ['strict: but not to super-admins', superAdmin({ unlabeled: 'deny' }), claims({}), 'super-admin'],
    ['strict: nor in auth-only mode', signedIn({}), claims({}), 'authz-off'],
    ['a list needs all', caller({ t: 'a' }), claims({ t: ['a', 'b'] }), 'access/insufficient-claims'],
    [
      'any a list needs one',
      caller({ t: 'a' }, { arrayMatch: 'any' }),
      claims({ t: ['a', 'b'] }),
      'claims-covered',
    ],
  ])('%s', (_rule, authority, registryClaims, expected) => {
    expect(codeOf(decideGate(authority, registryClaims))).toBe(expected);
  });
});

describe('a gate whose claims cannot be read', () => {
  test.each([
    ['is closed', caller({ org: 'acme' }), 'access/insufficient-claims'],
    ['is closed whatever unlabeled says', caller({}, { unlabeled: 'open' }), 'access/insufficient-claims'],
    ['lets super-admins pass', superAdmin(), 'super-admin'],
    ['is not looked at in auth-only mode', signedIn({}), 'authz-off'],
    ['is not looked at in anonymous mode', ANONYMOUS, 'authz-off'],
  ])('%s', (_rule, authority, expected) => {
    expect(codeOf(decideGate(authority, undefined))).toBe(expected);
  });
});

describe('the role gate', () => {
  test.each(ROLES)('%s is not asked for in anonymous and auth-only mode', (role) => {
    expect(codeOf(decideRole(ANONYMOUS, role))).toBe('authz-off');
    expect(codeOf(decideRole(signedIn({}), role))).toBe('authz-off');
  });

  test.each([
    ['manageSources', 'admin', true],
    ['manageRegistries', 'admin', true],
    ['manageEntries', 'admin', false],
    ['manageEntries', 'writer', true],
    ['manageSources', 'writer', false],
    ['superAdmin', 'admin', false],
    ['superAdmin', 'super-admin', true],
    ['manageSources', 'super-admin', true],
    ['manageRegistries', 'super-admin', true],
    ['manageEntries', 'super-admin', true],
  ] as const)('%s for a token with role %s: %s', (role, held, allowed) => {
    const decision = decideRole(caller({ role: held }), role);
    expect(decision.allowed).toBe(allowed);
    if (!decision.allowed) expect(decision.code).toBe('access/forbidden');
  });

  test('a refusal says which rule would grant', () => {
    expect(decideRole(caller({ role: 'writer' }), 'manageSources')).toMatchObject({
      reason: 'role-missing',
      trace: { mismatches: [{ reason: 'no-shared-value', key: 'role', wanted: ['admin'] }] },
    });
  });

  test('without rules nobody has a role', () => {
    const nobody = { ...caller({ role: 'super-admin' }), roles: [], rules: {} };
    for (const role of ROLES) expect(decideRole(nobody, role).allowed).toBe(false);
    expect(Object.keys(RULES)).toEqual([...ROLES]);
  });
});
