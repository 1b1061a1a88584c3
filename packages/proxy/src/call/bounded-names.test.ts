import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { BoundedNames, OTHER, type Known } from './bounded-names.ts';

test('names stay few, short and what they were, whatever order calls come in', () => {
  const call = fc.tuple(anyText(), fc.constantFrom<Known>('taken', 'failed', 'unknown'));
  fc.assert(
    fc.property(fc.array(call), (calls) => {
      const names = new BoundedNames();
      for (const [name, known] of calls) {
        const label = names.label(name, known);
        expect(Buffer.byteLength(label)).toBeLessThanOrEqual(131);
        expect(label.isWellFormed()).toBe(true);
        if (known === 'taken' && Buffer.byteLength(name) <= 128) expect(label).toBe(name.toWellFormed());
      }
    }),
  );
});

test('what clients make up takes the place of nothing that serves', () => {
  const names = new BoundedNames();
  const failed = Array.from({ length: 200 }, (_, at) => names.label(`made-up-${at}`, 'failed'));
  expect(failed.filter((label) => label === OTHER)).toHaveLength(100);
  expect(names.label('unheard-of', 'unknown')).toBe(OTHER);
  expect(names.label('real', 'taken')).toBe('real');
  expect(names.label('real', 'unknown')).toBe('real');
  const taken = Array.from({ length: 2_000 }, (_, at) => names.label(`real-${at}`, 'taken'));
  expect(taken.filter((label) => label !== OTHER)).toHaveLength(999);
});
