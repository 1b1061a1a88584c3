import { describe, expect, test } from 'vitest';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { decideUpdate } from './admin-scope.ts';
import {
  ANONYMOUS,
  CONTRACT_SWITCHES,
  resolveSwitches,
  STRICT_SWITCHES,
  describeCaller,
} from './authority.ts';
import { caller, claims, signedIn, superAdmin } from './callers.fixture.ts';
import { enforce } from './decision.ts';
import { explain } from './explain.ts';
import { decideGate, decideRole } from './gate.ts';
import { decidePublish } from './publish-rules.ts';

describe('explain', () => {
  test('names the failing key and every value that is missing', () => {
    const decision = decideGate(caller({ team: 'a' }), claims({ team: ['a', 'b', 'c'] }));
    expect(explain(decision)).toEqual({
      allowed: false,
      reason: 'claims-not-covered',
      key: 'team',
      because: 'claim "team" of the caller lacks "b", "c"',
      remedy: 'all of "b", "c"',
    });
  });

  test('says one of them where one suffices', () => {
    const decision = decideGate(caller({}, { arrayMatch: 'any' }), claims({ team: ['a', 'b'] }));
    expect(explain(decision)).toMatchObject({
      because: 'the caller has no claim "team"',
      remedy: 'one of "a", "b"',
    });
  });

  test('says that any value of a key would do', () => {
    expect(explain(decideGate(caller({}), claims({ team: [] }))).remedy).toBe(
      'a claim of that name with any value',
    );
  });

  test('says which rules did not grant a role', () => {
    expect(explain(decideRole(caller({ role: 'writer' }), 'manageSources'))).toMatchObject({
      because: 'no rule grants manageSources: claim "role" has none of "admin"',
      remedy: 'satisfy one rule of auth.authz.roles.manageSources',
    });
  });

  test('names the key that differs between versions', () => {
    const request = {
      claims: claims({ org: 'acme' }),
      target: { claims: {} },
      entry: { claims: claims({ org: 'b' }), hasVersion: false },
    };
    expect(explain(decidePublish(superAdmin(), request))).toMatchObject({
      reason: 'claims-differ',
      key: 'org',
    });
  });

  test('keeps control characters out of its words', () => {
    const { because } = explain(decideGate(caller({}), claims({ 'a\u001B[2J': 'x' })));
    expect(because).not.toMatch(/\p{Cc}/u);
  });

  test('says why a pass is a pass', () => {
    expect(explain(decideGate(ANONYMOUS, claims({ a: 'x' })))).toEqual({
      allowed: true,
      reason: 'authz-off',
      because: 'no authorization is configured in this mode',
    });
  });
});

describe('enforce', () => {
  const update = decideUpdate(superAdmin(), { creationType: 'CONFIG', claims: claims({}) }, claims({}));

  test('throws the code of the refusal with the message of the caller', () => {
    expect(() => enforce(update, 'cannot modify config-created source via API: x')).toThrow(
      expect.objectContaining({
        code: 'access/config-created',
        message: 'cannot modify config-created source via API: x',
      }),
    );
  });

  test('says nothing about the claims that were missing', () => {
    try {
      enforce(decideGate(caller({}), claims({ secretTeam: 'x' })));
      expect.unreachable();
    } catch (error) {
      expect(hasCode(error, 'access/insufficient-claims')).toBe(true);
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('secretTeam');
    }
  });

  test('returns where the decision allows', () => {
    expect(() => enforce(decideGate(ANONYMOUS, claims({})))).not.toThrow();
  });
});

describe('describeCaller', () => {
  test('is 401 in anonymous mode', () => {
    expect(() => describeCaller(ANONYMOUS)).toThrow(
      expect.objectContaining({ code: 'auth/unauthenticated' }),
    );
  });

  test('has no roles in auth-only mode', () => {
    expect(describeCaller(signedIn({ role: 'super-admin' }))).toEqual({ subject: 'someone', roles: [] });
  });

  test('lists the roles of the token in full authorization', () => {
    expect(describeCaller(caller({ role: 'admin' })).roles).toEqual(['manageSources', 'manageRegistries']);
    expect(describeCaller(superAdmin()).roles).toEqual(['superAdmin']);
  });
});

describe('resolveSwitches', () => {
  test('is the default without settings', () => {
    expect(resolveSwitches({})).toEqual(CONTRACT_SWITCHES);
  });

  test('strict turns every switch', () => {
    expect(resolveSwitches({ preset: 'strict' })).toEqual(STRICT_SWITCHES);
    for (const name of ['requirePublishClaims', 'unlabeled', 'arrayMatch', 'managedSourceGate'] as const) {
      expect(STRICT_SWITCHES[name]).not.toEqual(CONTRACT_SWITCHES[name]);
    }
  });

  test('a single switch overrides the preset', () => {
    expect(resolveSwitches({ preset: 'strict', arrayMatch: 'all' })).toEqual({
      ...STRICT_SWITCHES,
      arrayMatch: 'all',
    });
  });
});
