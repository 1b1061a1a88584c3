import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { edited } from '../doubles/edited-text.ts';
import { judge, MAX_DEPTH } from './json-text.ts';

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
