import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EntryKind, StoredEntry } from '../store/rows.ts';
import { buildBlock, patchBlock, type SourceBlock } from './block.ts';
import { entryOf } from './entry.fixture.ts';
import { entryKey } from './entry-key.ts';

const anyEntry = fc
  .tuple(
    fc.constantFrom<EntryKind>('server', 'skill', 'plugin'),
    fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    fc.nat(3),
  )
  .map(([kind, name, text]) => entryOf(kind, name, String(text)));
const idOf = (one: StoredEntry): string => `${one.kind} ${entryKey(one)}`;
const anyEntries = fc.uniqueArray(anyEntry, { selector: idOf, maxLength: 20 });

/** What callers get of a block. */
const served = ({ entries }: SourceBlock): unknown =>
  Object.entries(entries).map(([kind, list]) => [
    kind,
    [...list].map(({ key, bytes, versions }) => [
      key,
      ...versions.map(({ start, end, digest }) => [bytes.subarray(start, end).toString(), digest]),
    ]),
  ]);

describe('patchBlock', () => {
  test('gives what building the whole block anew gives, digests of versions included', () => {
    fc.assert(
      fc.property(anyEntries, anyEntries, fc.array(anyEntry, { maxLength: 5 }), (before, changes, gone) => {
        const changed = [...changes, ...gone];
        const touched = new Set(changed.map(idOf));
        const after = [...before.filter((one) => !touched.has(idOf(one))), ...changes];
        const patched = patchBlock(buildBlock('s', before), changed, changes);
        const whole = buildBlock('s', after);
        expect(served(patched)).toEqual(served(whole));
      }),
    );
  });

  test('leaves kinds alone of which nothing changed', () => {
    const block = buildBlock('s', [entryOf('skill', 'a', 'x')]);
    const patched = patchBlock(block, [entryOf('server', 'b', 'y')], [entryOf('server', 'b', 'y')]);
    expect(patched.entries.skill).toBe(block.entries.skill);
  });
});
