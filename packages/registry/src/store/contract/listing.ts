import { beforeEach, describe, expect, test } from 'vitest';
import type { EntryIdentity, ListedVersion, NewEntry } from '../rows.ts';
import { ACME, type Fixture, replacementOf, sourceOf, versionOf } from './fixture.ts';

function entryOf(kind: EntryIdentity['kind'], path: string, versions: readonly string[]): NewEntry {
  const [namespace = '', name = ''] = kind === 'server' ? ['', path] : path.split(':');
  return { kind, namespace, name, claims: ACME, versions: versions.map((version) => versionOf(version)) };
}

const ENTRIES: readonly NewEntry[] = [
  entryOf('server', 'b/b', ['1', '10', '9']),
  entryOf('server', 'a/a', ['1']),
  entryOf('server', 'Z/z', ['1', '2']),
  entryOf('skill', 'n2:b/b', ['1']),
  entryOf('skill', 'n1:b/b', ['1', '2']),
  entryOf('skill', 'n1:é', ['1']),
  entryOf('plugin', 'n1:b/b', ['1']),
];

const shown = ({ kind, namespace, name, version }: ListedVersion): string =>
  `${name} ${version} ${kind} ${namespace}`;

/** What listings of administrators read. */
export function listing(fixture: Fixture): void {
  describe('listing', () => {
    beforeEach(async () => {
      await fixture.store.reconcile({
        sources: [sourceOf('one', 'file', ACME), sourceOf('two')],
        registries: [],
      });
      await fixture.store.replaceEntries(replacementOf('one', ENTRIES, 'T1'));
      await fixture.store.replaceEntries(replacementOf('two', [entryOf('server', 'a/b', ['1'])], 'T1'));
    });

    test('gives entries of a kind by namespace and name in parts of any size, without their documents', async () => {
      const of = { source: 'one', kind: 'skill' } as const;
      const all = await fixture.store.listEntries(of, {});
      const times = { createdAt: 'T1', updatedAt: 'T1' };
      const head = (version: string) => ({ version, title: null, description: null, ...times });
      expect(all).toEqual([
        { kind: 'skill', namespace: 'n1', name: 'b/b', claims: ACME, versions: [head('1'), head('2')] },
        { kind: 'skill', namespace: 'n1', name: 'é', claims: ACME, versions: [head('1')] },
        { kind: 'skill', namespace: 'n2', name: 'b/b', claims: ACME, versions: [head('1')] },
      ]);
      expect(await fixture.store.listEntries(of, { limit: 2 })).toEqual(all.slice(0, 2));
      expect(await fixture.store.listEntries(of, { after: all[0], limit: 1 })).toEqual(all.slice(1, 2));
      expect(await fixture.store.listEntries(of, { after: all[2] })).toEqual([]);
      const servers = await fixture.store.listEntries({ source: 'one', kind: 'server' }, {});
      expect(servers.map(({ name }) => name)).toEqual(['Z/z', 'a/a', 'b/b']);
    });

    test('gives versions by name, version, kind and namespace in parts of any size, without their documents', async () => {
      const all = await fixture.store.listVersions('one', {});
      expect(all.map(shown)).toEqual([
        'Z/z 1 server ',
        'Z/z 2 server ',
        'a/a 1 server ',
        'b/b 1 plugin n1',
        'b/b 1 server ',
        'b/b 1 skill n1',
        'b/b 1 skill n2',
        'b/b 10 server ',
        'b/b 2 skill n1',
        'b/b 9 server ',
        'é 1 skill n1',
      ]);
      expect(all[0]).not.toHaveProperty('document');
      for (const limit of [1, 2, 3, 100]) {
        const parts: ListedVersion[] = [];
        for (let last: ListedVersion | undefined, part; part === undefined || part.length > 0;) {
          part = await fixture.store.listVersions('one', { after: last, limit });
          expect(part.length).toBeLessThanOrEqual(limit);
          parts.push(...part);
          last = parts.at(-1);
        }
        expect(parts).toEqual(all);
      }
    });
  });
}
