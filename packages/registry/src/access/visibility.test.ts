import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { firstUncovered } from '@skep/auth/claims/covers.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { tokenIdentity } from '@skep/auth/token/identity.ts';
import { ANONYMOUS, rememberedAuthority, CONTRACT_SWITCHES, type Authority } from './authority.ts';
import { caller, claims, RULES, signedIn, superAdmin } from './callers.fixture.ts';
import { decideGate } from './gate.ts';
import { decideVisibility, snapshotVisibility, type Visibility } from './visibility.ts';

const acme = '{"org":["acme"]}';

describe('an entry', () => {
  test.each([
    ['with claims exists in anonymous mode', ANONYMOUS, acme, true],
    ['with claims exists in auth-only mode', signedIn({}), acme, true],
    ['without claims exists in anonymous mode', ANONYMOUS, '', true],
    ['without claims exists in auth-only mode', signedIn({}), '', true],
    ['without claims does not exist in full authorization', caller({ org: 'acme' }), '', false],
    ['whatever unlabeled says', caller({ org: 'acme' }, { unlabeled: 'open' }), '', false],
    ['without claims exists for super-admins', superAdmin(), '', true],
    ['exists for who covers its claims', caller({ org: 'acme' }), acme, true],
    ['does not exist for others', caller({ org: 'contoso' }), acme, false],
    ['exists for super-admins without its claims', superAdmin(), '{"org":["contoso"]}', true],
    ['with an array needs all of it', caller({ org: 'acme' }), '{"org":["acme","x"]}', false],
    [
      'any with an array needs one',
      caller({ org: 'acme' }, { arrayMatch: 'any' }),
      '{"org":["acme","x"]}',
      true,
    ],
    ['with a corrupt value exists for nobody', caller({ org: 'acme' }), '{"org":{"x":1}}', false],
    ['with corrupt claims exists for nobody', caller({ org: 'acme' }), '["acme"]', false],
    ['with half a text exists for nobody', caller({ org: 'acme' }), '{"org":', false],
  ])('%s', (_rule, authority, held, expected) => {
    const decision = decideVisibility(authority, held);
    expect(decision.allowed).toBe(expected);
    if (!decision.allowed) expect(decision.code).toBe('access/hidden');
  });
});

function visibleClasses(authority: Authority, claimSets: readonly string[]): Visibility {
  return snapshotVisibility(claimSets)(authority);
}

describe('what a caller sees of a snapshot', () => {
  test('shows every known class to everyone in anonymous mode', () => {
    const { visible } = visibleClasses(ANONYMOUS, ['', acme]);
    expect([visible(0), visible(1)]).toEqual([true, true]);
  });

  test('hides a class that the snapshot does not know', () => {
    expect(visibleClasses(ANONYMOUS, ['']).visible(1)).toBe(false);
  });

  test('agrees with containment on every set', () => {
    const text = fc.constantFrom('a', 'b', 'c');
    const value = fc.oneof(text, fc.uniqueArray(text, { maxLength: 3 }));
    const map = fc.dictionary(fc.constantFrom('org', 'team', '__proto__'), value, { maxKeys: 3 });
    fc.assert(
      fc.property(map, fc.array(map, { maxLength: 10 }), (token, sets) => {
        const authority = caller(token);
        const { visible } = visibleClasses(
          authority,
          sets.map((set) => canonicalClaims(claims(set))),
        );
        for (const [index, set] of sets.entries()) {
          const expected = Object.keys(set).length > 0 && firstUncovered(token, set, 'all') === undefined;
          expect(visible(index)).toBe(expected);
        }
      }),
    );
  });
});

describe('snapshotVisibility', () => {
  test('gives the same answer as visibleClasses, and the same object to the same caller', () => {
    const sets = ['', acme, '{"org":["contoso"]}'];
    const see = snapshotVisibility(sets);
    for (const authority of [ANONYMOUS, signedIn({}), caller({ org: 'acme' }), superAdmin()]) {
      expect(see(authority).fingerprint).toBe(visibleClasses(authority, sets).fingerprint);
      expect(see(authority)).toBe(see(authority));
    }
  });
});

describe('rememberedAuthority', () => {
  test('is one authority per identity object, never shared between callers', () => {
    const remembered = rememberedAuthority({ kind: 'full', rules: RULES, switches: CONTRACT_SWITCHES });
    const one = tokenIdentity({ role: 'admin' }, 'same');
    const other = tokenIdentity({ role: 'writer' }, 'same');
    expect(remembered(one)).toBe(remembered(one));
    expect(remembered(one)).toMatchObject({ roles: ['manageSources', 'manageRegistries'] });
    expect(remembered(other)).toMatchObject({ roles: ['manageEntries'] });
  });
});

// The three registries and sources of the example deployment in the shared data, by persona.
const personas = path.resolve(import.meta.dirname, '../../../../../shared/data/claims/personas.json');

describe.skipIf(!existsSync(personas))('personas of the shared data [needs ../shared]', () => {
  const gates = {
    'acme-all': claims({ org: 'acme' }),
    'acme-platform': claims({ org: 'acme', team: 'platform' }),
    'acme-data': claims({ org: 'acme', team: 'data' }),
  };
  const sources = {
    'shared-catalog': '{"org":["acme"]}',
    'platform-tools': '{"org":["acme"],"team":["platform"]}',
    'data-tools': '{"org":["acme"],"team":["data"]}',
    unlabeled: '',
  };
  const cases: { persona: string; claims: Record<string, unknown> }[] = existsSync(personas)
    ? JSON.parse(readFileSync(personas, 'utf8'))
    : [];
  const allGates = Object.keys(gates);
  const expected: Record<string, { gates: string[]; sources: string[] }> = {
    'super-admin': { gates: allGates, sources: Object.keys(sources) },
    'platform-admin': { gates: ['acme-all', 'acme-platform'], sources: ['shared-catalog', 'platform-tools'] },
    'platform-writer': {
      gates: ['acme-all', 'acme-platform'],
      sources: ['shared-catalog', 'platform-tools'],
    },
    'data-writer': { gates: ['acme-all', 'acme-data'], sources: ['shared-catalog', 'data-tools'] },
    outsider: { gates: [], sources: [] },
  };

  test.each(cases)('$persona', ({ persona, claims: token }) => {
    const authority = caller(token);
    expect({
      gates: Object.entries(gates).flatMap(([name, held]) =>
        decideGate(authority, held).allowed ? [name] : [],
      ),
      sources: Object.entries(sources).flatMap(([name, held]) =>
        decideVisibility(authority, held).allowed ? [name] : [],
      ),
    }).toEqual(expected[persona]);
  });
});
