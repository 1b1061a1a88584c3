import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { edited } from './edited-text.fixture.ts';
import { jsonErrorPlace, judge, MAX_DEPTH } from './judge.ts';

const parses = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

describe('judging JSON text', () => {
  test('accepts what JSON.parse accepts, and nothing else, also after any edit', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), edited(fc.json(), 1), fc.string()), (text) => {
        expect(judge(text)).toBe(parses(text) ? 'json' : 'not-json');
      }),
      { numRuns: 3_000 },
    );
  });

  test.each([
    '',
    ' ',
    '1.',
    '01',
    '-',
    '+1',
    '.5',
    '1e',
    '"a',
    '"\\x"',
    '"\\u12g4"',
    '"\t"',
    '\ufeff1',
    '[1,]',
    '[,1]',
    '{"a"}',
    '{"a":}',
    '{a:1}',
    '{"a":1,}',
    '[1 2]',
    '1 2',
    ']',
    'nul',
    'truex',
    '\u00a01',
  ])('refuses %j', (text) => expect(judge(text)).toBe('not-json'));

  test('counts levels, not brackets in strings or beside each other', () => {
    const nested = (depth: number): string => '[{"a":'.repeat(depth / 2) + '1' + '}]'.repeat(depth / 2);
    expect(judge(nested(MAX_DEPTH))).toBe('json');
    expect(judge(nested(MAX_DEPTH + 2))).toBe('too-deep');
    expect(judge(JSON.stringify('['.repeat(5_000)))).toBe('json');
    expect(judge(`[${'[],'.repeat(5_000)}{}]`)).toBe('json');
  });

  test('stops at the level it refuses, however much follows', () => {
    expect(judge('['.repeat(2_000_000))).toBe('too-deep');
  });
});

test.each([
  ['', 1, 1],
  ['{\n "a": }', 2, 7],
  ['{"a": 1,\n}', 2, 1],
  ['[1 2]', 1, 4],
  ['{"a" 1}', 1, 6],
  ["{'a': 1}", 1, 2],
  ['[1]]', 1, 4],
  ['{"a": [1}', 1, 9],
  ['"a\nb"', 1, 1],
  ['[01]', 1, 3],
  ['<html>', 1, 1],
])('%j breaks at line %d, column %d', (text, line, column) => {
  expect(jsonErrorPlace(text)).toEqual({ line, column });
});

test('finds the place behind a string of several megabytes', () => {
  expect(jsonErrorPlace(`{"a": "${'x'.repeat(10_000_000)}"\n oops}`)).toEqual({ line: 2, column: 2 });
});

test('agrees with JSON.parse on what is valid, for damaged documents', () => {
  const damaged = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '[', '"', ':', '0', ' ', '\\', '\n', '-'))
    .map(([json, where, insert]) => {
      const at = where % (json.length + 1);
      return json.slice(0, at) + insert + json.slice(insert === '' ? at + 1 : at);
    });
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string(), damaged), (text) => {
      expect(jsonErrorPlace(text) === undefined).toBe(parses(text));
    }),
    { numRuns: 1_000 },
  );
});
