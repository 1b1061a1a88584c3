import { describe, expect, test } from 'vitest';
import { decisionFaults, decisionIndex, readDecision, type Decision } from './decisions.ts';

const decision = (more: Partial<Decision>): Decision => ({
  file: '0007-a.md',
  number: '0007',
  title: 'A',
  words: 3,
  ...more,
});

describe('a decision record', () => {
  test('has the number of its file in its heading', () => {
    expect(readDecision('0007-a.md', '# 0007 A title\n\nThree words here.\n')).toEqual(
      decision({ title: 'A title' }),
    );
    expect(readDecision('0007-a.md', '# 0008 A title\n')).toBeUndefined();
    expect(readDecision('notes.md', '# 0007 A title\n')).toBeUndefined();
  });

  test('has at most 150 words, but the table of dependencies has as many as it needs', () => {
    expect(decisionFaults([decision({ words: 150 })])).toEqual([]);
    expect(decisionFaults([decision({ words: 151 })])).toEqual([
      '0007-a.md: 151 words, at most 150; split it, or say less',
    ]);
    expect(decisionFaults([decision({ file: '0003-b.md', number: '0003', words: 700 })])).toEqual([]);
  });

  test('shares its number with no other', () => {
    expect(decisionFaults([decision({}), decision({ file: '0007-b.md' })])).toHaveLength(2);
  });
});

test('the list has a line per record, in their order', () => {
  const index = decisionIndex([decision({ file: '0008-b.md', number: '0008', title: 'B' }), decision({})]);
  expect(index.split('\n').slice(4)).toEqual(['* [0007](0007-a.md) A', '* [0008](0008-b.md) B', '']);
});
