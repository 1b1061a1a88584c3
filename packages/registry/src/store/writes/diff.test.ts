import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffEntries, type EntryDiff, type VersionHead } from './diff.ts';
import { turnsDuring, versionOf } from '../contract/fixture.ts';
import type { NewEntry } from '../rows.ts';

const documents = fc.constantFrom('{"a":1}', '{"a":2}', '{}');
const version = fc.record({
  version: fc.constantFrom('1', '2', '3'),
  title: fc.constant(null),
  description: fc.constant(null),
  document: documents,
  official: fc.constantFrom(null, '{"status":"active"}'),
});
const entry = fc.record({
  kind: fc.constantFrom('server' as const, 'skill' as const),
  namespace: fc.constantFrom('', 'io.acme'),
  name: fc.constantFrom('a', 'b'),
  claims: fc.constantFrom('', '{"org":["acme"]}'),
  versions: fc.uniqueArray(version, { selector: (item) => item.version, minLength: 1 }),
});
const catalogue = fc.uniqueArray(entry, {
  selector: ({ kind, namespace, name }) => [kind, namespace, name].join(' '),
});

const identity = ({ kind, namespace, name }: { kind: string; namespace: string; name: string }): string =>
  [kind, namespace, name].join(' ');

/** Does to a list of heads what a store does to its tables. */
function applied(heads: readonly VersionHead[], diff: EntryDiff): VersionHead[] {
  const removed = new Set(diff.removeVersions);
  const gone = new Set(diff.removeEntries.map(identity));
  const claims = new Map(diff.claim.map((item) => [identity(item), item.claims]));
  const rows = new Map(
    heads
      .filter((head) => !removed.has(head) && !gone.has(identity(head)))
      .map((head) => [`${identity(head)} ${head.version}`, head]),
  );
  for (const row of diff.write) {
    const key = `${identity(row)} ${row.version}`;
    rows.set(key, { ...row, claims: rows.get(key)?.claims ?? '' });
  }
  const known = new Map(heads.map((head) => [identity(head), head.claims]));
  return [...rows.values()].map((row) => ({
    ...row,
    claims: claims.get(identity(row)) ?? known.get(identity(row)) ?? '',
  }));
}

describe('diffEntries', () => {
  test('writes what leads from any state to any other, and nothing when nothing changed', async () => {
    await fc.assert(
      fc.asyncProperty(
        catalogue,
        catalogue,
        async (first: readonly NewEntry[], second: readonly NewEntry[]) => {
          const one = applied([], await diffEntries('one', [], first, 'T1'));
          const two = applied(one, await diffEntries('one', one, second, 'T2'));
          const again = await diffEntries('one', two, second, 'T3');
          expect({ ...again, after: [] }).toEqual({
            write: [],
            claim: [],
            removeVersions: [],
            removeEntries: [],
            after: [],
          });
          expect(two).toHaveLength(second.reduce((sum, item) => sum + item.versions.length, 0));
        },
      ),
    );
  });

  test('keeps the times of an unchanged version, and the creation time of a changed one', async () => {
    const of = (document: string): NewEntry[] => [
      {
        kind: 'server',
        namespace: '',
        name: 'a/a',
        claims: '',
        versions: [{ version: '1', title: null, description: null, document, official: null }],
      },
    ];
    const heads = applied([], await diffEntries('one', [], of('{}'), 'T1'));
    const times = (diff: EntryDiff): unknown =>
      diff.after[0]?.versions.map(({ createdAt, updatedAt }) => [createdAt, updatedAt]);
    expect(times(await diffEntries('one', heads, of('{}'), 'T2'))).toEqual([['T1', 'T1']]);
    expect(times(await diffEntries('one', heads, of('{"b":1}'), 'T2'))).toEqual([['T1', 'T2']]);
  });

  test('lets other requests have their turn while it compares very many versions', async () => {
    const versions = Array.from({ length: 5_000 }, (_, index) => versionOf(String(index)));
    const entries = [{ kind: 'server', namespace: '', name: 'a/a', claims: '', versions } as const];
    const turns = await turnsDuring(() => diffEntries('one', [], entries, 'T1'));
    expect(turns).toBeGreaterThanOrEqual(10);
  });
});
