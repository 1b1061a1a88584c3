import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RawClaims } from './claims.ts';
import { type ArrayMatch, firstUncovered } from './covers.ts';

const covers = (caller: RawClaims, resource: RawClaims, match: ArrayMatch): boolean =>
  firstUncovered(caller, resource, match) === undefined;

interface Row {
  readonly rule: string;
  readonly resource: RawClaims;
  readonly caller: RawClaims;
  readonly all: boolean;
  readonly any: boolean;
}

const proto: RawClaims = JSON.parse('{"__proto__":"x"}');

// docs/behaviour/registry.md#claim-containment, row by row, then what the page says around it.
const rows: Row[] = [
  row('extra claims of the caller are irrelevant', { org: 'a' }, { org: 'a', team: 't' }, [true, true]),
  row('every key is needed', { org: 'a', team: 't' }, { org: 'a' }, [false, false]),
  row('no claims are covered by anything', {}, { sub: 'x' }, [true, true]),
  row('no claims are covered by no claims', {}, {}, [true, true]),
  row('another value is not covered', { org: 'a' }, { org: 'b' }, [false, false]),
  row('one element of the caller suffices', { team: 't' }, { team: ['s', 't'] }, [true, true]),
  row('a list within a larger list', { team: ['s', 't'] }, { team: ['s', 't', 'u'] }, [true, true]),
  row('a list needs all elements, or any', { team: ['s', 't'] }, { team: 's' }, [false, true]),
  row('disjoint lists', { team: ['s', 't'] }, { team: ['u'] }, [false, false]),
  row('[] needs the key: present', { team: [] }, { team: 'x' }, [true, true]),
  row('[] needs the key: present as a number', { team: [] }, { team: 1 }, [true, true]),
  row('[] needs the key: absent', { team: [] }, { org: 'x' }, [false, false]),
  row('a number is not its text', { n: '5' }, { n: 5 }, [false, false]),
  row('true is not its text', { n: 'true' }, { n: true }, [false, false]),
  row('null is not its text', { n: 'null' }, { n: null }, [false, false]),
  row('numbers among the caller elements count for nothing', { n: ['5'] }, { n: [5, '6'] }, [false, false]),
  row('a corrupt object', { o: { x: 1 } }, { o: { x: 1 } }, [false, false]),
  row('a corrupt number', { o: 1 }, { o: 1 }, [false, false]),
  row('a corrupt null', { o: null }, { o: null }, [false, false]),
  row('one corrupt element spoils the list', { o: ['a', 1] }, { o: ['a', 1] }, [false, false]),
  row('corrupt beside covered', { a: 'x', o: { x: 1 } }, { a: 'x', o: 'y' }, [false, false]),
  row('upper case differs', { org: 'ACME' }, { org: 'acme' }, [false, false]),
  row('blanks are kept', { org: 'acme ' }, { org: 'acme' }, [false, false]),
  row('a letter that looks alike differs', { org: 'acme' }, { org: '\u0430cme' }, [false, false]),
  row('a letter and its parts differ', { org: 'caf\u00E9' }, { org: 'cafe\u0301' }, [false, false]),
  row('what has no width counts', { org: 'acme' }, { org: 'acme\u200B' }, [false, false]),
  row('a NUL ends no text', { org: 'acme' }, { org: 'acme\0x' }, [false, false]),
  row('commas make no list', { org: ['acme', 'other'] }, { org: 'acme,other' }, [false, false]),
  row('a nested list is no element', { org: 'acme' }, { org: [['acme']] }, [false, false]),
  row('the empty text is a value', { org: '' }, { org: '' }, [true, true]),
  row('the empty text is not absence', { org: '' }, {}, [false, false]),
  row('a repeated element counts once', { t: ['s', 's'] }, { t: 's' }, [true, true]),
  row('a dotted key is literal', { 'a.b': 'x' }, { a: { b: 'x' } }, [false, false]),
  row('constructor is not inherited', { constructor: [] }, {}, [false, false]),
  row('toString is not inherited', { toString: [] }, {}, [false, false]),
  row('a text is not inherited', { org: 'a' }, Object.create({ org: 'a' }), [false, false]),
  row('__proto__ is not inherited', asClaims('{"__proto__":[]}'), {}, [false, false]),
  row('__proto__ is covered as plain data', proto, proto, [true, true]),
];

function row(rule: string, resource: RawClaims, caller: RawClaims, expected: [boolean, boolean]): Row {
  return { rule, resource, caller, all: expected[0], any: expected[1] };
}

function asClaims(json: string): RawClaims {
  return JSON.parse(json);
}

describe('covers', () => {
  test.each(rows)('$rule', ({ resource, caller, all, any }) => {
    expect({
      all: covers(caller, resource, 'all'),
      any: covers(caller, resource, 'any'),
    }).toEqual({ all, any });
  });

  const table = path.resolve(import.meta.dirname, '../../../../../shared/data/claims/containment-seed.json');
  test.skipIf(!existsSync(table))('agrees with the containment table of the shared data', () => {
    const cases: { resource: RawClaims; caller: RawClaims; allowed: boolean }[] = JSON.parse(
      readFileSync(table, 'utf8'),
    );
    expect(cases.length).toBeGreaterThan(0);
    for (const { resource, caller, allowed } of cases) expect(covers(caller, resource, 'all')).toBe(allowed);
  });
});

describe('firstUncovered', () => {
  test('is undefined where the claims are covered', () => {
    expect(firstUncovered({ org: 'a' }, { org: 'a' }, 'all')).toBeUndefined();
  });

  test.each([
    ['missing', { org: ['a', 'b'] }, {}, ['a', 'b']],
    ['lacking', { org: ['a', 'b'] }, { org: 'a' }, ['b']],
    ['lacking', { org: 'b' }, { org: 7 }, ['b']],
    ['missing', { org: [] }, {}, []],
    ['corrupt', { org: { x: 1 } }, { org: 'a' }, []],
  ])('says %s and which values are lacking', (reason, resource, caller, lacking) => {
    expect(firstUncovered(caller, resource, 'all')).toEqual({ key: 'org', reason, lacking, match: 'all' });
  });

  test('does not take inherited keys of the caller for held ones', () => {
    expect(firstUncovered({}, { constructor: 'x' }, 'all')).toMatchObject({ reason: 'missing' });
  });
});

const key = fc.constantFrom('org', 'team', 'role', '__proto__', 'constructor', 'a.b', '');
const text = fc.constantFrom('a', 'b', 'c', '', 'A');
const resourceValue = fc.oneof(text, fc.array(text, { maxLength: 4 }));
const odd = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.dictionary(text, text));
const callerValue = fc.oneof(resourceValue, odd, fc.array(fc.oneof(text, odd), { maxLength: 4 }));
const map = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Record<string, Value>> =>
  fc.dictionary(key, value, { maxKeys: 5, noNullPrototype: false });
const match = fc.constantFrom<ArrayMatch>('all', 'any');

/** The rule of the page, written naively. */
function naive(caller: RawClaims, resource: RawClaims, direction: ArrayMatch): boolean {
  return Object.entries(resource).every(([name, required]) => {
    const list: unknown[] = Array.isArray(required) ? required : [required];
    if (!list.every((value) => typeof value === 'string')) return false;
    if (!Object.keys(caller).includes(name)) return false;
    const held = [Object.getOwnPropertyDescriptor(caller, name)?.value].flat();
    if (list.length === 0) return true;
    const found = list.filter((value) => held.some((one) => typeof one === 'string' && one === value));
    return direction === 'any' ? found.length > 0 : found.length === list.length;
  });
}

describe('properties of covers', () => {
  test('agrees with the rule written naively', () => {
    fc.assert(
      fc.property(
        map(callerValue),
        map(fc.oneof(resourceValue, callerValue)),
        match,
        (caller, resource, m) => {
          expect(covers(caller, resource, m)).toBe(naive(caller, resource, m));
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('all implies any', () => {
    fc.assert(
      fc.property(map(callerValue), map(resourceValue), (caller, resource) => {
        if (covers(caller, resource, 'all')) expect(covers(caller, resource, 'any')).toBe(true);
      }),
    );
  });

  test('a caller that gains a claim or a value loses nothing', () => {
    fc.assert(
      fc.property(
        map(resourceValue),
        map(resourceValue),
        key,
        text,
        (...[caller, resource, gained, value]) => {
          const held = Object.hasOwn(caller, gained) ? [caller[gained] ?? []].flat() : [];
          const richer = Object.fromEntries([...Object.entries(caller), [gained, [...held, value]]]);
          for (const m of ['all', 'any'] as const) {
            if (covers(caller, resource, m)) expect(covers(richer, resource, m)).toBe(true);
          }
        },
      ),
    );
  });

  test('the order of keys and elements does not matter', () => {
    const reversed = (claims: RawClaims): RawClaims =>
      Object.fromEntries(
        Object.entries(claims)
          .toReversed()
          .map(([name, value]) => [name, Array.isArray(value) ? value.toReversed() : value]),
      );
    fc.assert(
      fc.property(map(callerValue), map(resourceValue), match, (caller, resource, m) => {
        expect(covers(reversed(caller), reversed(resource), m)).toBe(covers(caller, resource, m));
      }),
    );
  });

  test('everybody covers what they hold', () => {
    fc.assert(
      fc.property(map(resourceValue), match, (claims, m) => {
        const nonEmpty = Object.entries(claims).filter(([, value]) => value.length > 0 || value === '');
        expect(covers(claims, Object.fromEntries(nonEmpty), m)).toBe(true);
      }),
    );
  });
});
