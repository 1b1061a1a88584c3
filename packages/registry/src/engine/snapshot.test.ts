import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ANONYMOUS, type Authority } from '../access/authority.ts';
import { caller } from '../access/callers.fixture.ts';
import type { EntryKind, StoredEntry } from '../store/rows.ts';
import { buildBlock, changedKeys, patchBlock } from './block.ts';
import { entryOf } from './entry.fixture.ts';
import type { ViewState } from './kept-pages.ts';
import { entryKey } from './entry-key.ts';
import { ReadEngine, type EngineChange } from './read-engine.ts';
import { buildSnapshot, type RegistryDefinition, type Snapshot } from './snapshot.ts';

const ACME = '{"org":["acme"]}';

const anyEntry = fc
  .tuple(
    fc.constantFrom<EntryKind>('server', 'skill'),
    fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    fc.constantFrom('', ACME, '{"org":["other"]}'),
    fc.nat(2),
  )
  .map(([kind, name, claims, text]) => entryOf(kind, name, String(text), claims));
const idOf = (one: StoredEntry): string => `${one.kind} ${entryKey(one)}`;
const anyEntries = fc.uniqueArray(anyEntry, { selector: idOf, maxLength: 12 });

const REGISTRIES: readonly RegistryDefinition[] = [
  { name: 'both', sources: ['one', 'two'], claims: '' },
  { name: 'turned', sources: ['two', 'one'], claims: ACME },
  { name: 'second', sources: ['two', 'absent'], claims: '' },
];

/** Everything that decides about answers; numbers of claim sets may differ. */
const served = ({ registries, claimSets }: Snapshot): unknown => ({
  claimSets: claimSets.toSorted(),
  registries: [...registries].map(([name, { gate, groups }]) => [
    name,
    gate,
    Object.entries(groups).map(([kind, { all, byClass }]) => [
      kind,
      [...all].map(({ key, candidates }) => [
        key,
        candidates.map(({ claimClass, entry: { claims, versions } }) => {
          expect(claimSets[claimClass]).toBe(claims);
          return [claims, versions.map(({ digest }) => digest)];
        }),
      ]),
      [...byClass]
        .map(([claimClass, list]) => {
          expect([...list].every((group) => all.find(group.key) === group)).toBe(true);
          return [claimSets[claimClass] ?? '', [...list].map(({ key }) => key)] as const;
        })
        .toSorted(([one], [other]) => (one < other ? -1 : 1)),
    ]),
  ]),
});

describe('a snapshot after changes of single entries', () => {
  const source = fc.constantFrom('one', 'two');
  const some = fc.array(anyEntry, { maxLength: 3 });
  const changes = fc.array(fc.tuple(source, anyEntries, some, some), { maxLength: 5 });

  test('is what building it anew gives, after any number of changes and of others that were only prepared', () => {
    fc.assert(
      fc.property(anyEntries, anyEntries, changes, (first, second, steps) => {
        const stored = new Map([
          ['one', first],
          ['two', second],
        ]);
        const engine = new ReadEngine(REGISTRIES);
        engine.update({ blocks: [...stored].map(([name, entries]) => buildBlock(name, entries)) });
        for (const [name, now, gone, never] of steps) {
          const changed = [...now, ...gone];
          const touched = new Set(changed.map(idOf));
          const kept = stored.get(name)?.filter((one) => !touched.has(idOf(one))) ?? [];
          stored.set(name, [...kept, ...now]);
          const block = engine.blocks().get(name);
          if (block === undefined) throw new Error('the block is there');
          const change = (about: readonly StoredEntry[], left: readonly StoredEntry[]): EngineChange => ({
            blocks: [patchBlock(block, about, left)],
            changed: new Map([[name, changedKeys(about)]]),
          });
          const before = served(engine.current());
          const serve = engine.prepare(change(never, never));
          expect(served(engine.current())).toEqual(before);
          engine.update(change(changed, now));
          expect(serve()).toBe(false);
          const blocks = new Map([...stored].map(([other, entries]) => [other, buildBlock(other, entries)]));
          expect(served(engine.current())).toEqual(served(buildSnapshot(REGISTRIES, blocks)));
        }
      }),
    );
  });

  test('keeps what did not change, and who sees what', () => {
    const engine = new ReadEngine(REGISTRIES);
    const [a, b] = [entryOf('server', 'a', 'x', ACME), entryOf('server', 'b', 'x', '')];
    engine.update({ blocks: [buildBlock('one', [a, b]), buildBlock('two', [b])] });
    const before = engine.current();
    const seen = before.visibility(ANONYMOUS);
    const block = engine.blocks().get('one');
    if (block === undefined) throw new Error('the block is there');
    const c = entryOf('server', 'c', 'x', ACME);
    engine.update({
      blocks: [patchBlock(block, [c], [c])],
      changed: new Map([['one', changedKeys([c])]]),
    });
    const after = engine.current();
    expect(after.registries.get('second')).toBe(before.registries.get('second'));
    const groups = [...(after.registries.get('both')?.groups.server.all ?? [])];
    expect(groups.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
    const earlier = [...(before.registries.get('both')?.groups.server.all ?? [])];
    expect(groups.slice(0, 2)).toEqual(earlier);
    expect(groups[0]).toBe(earlier[0]);
    expect(after.visibility(ANONYMOUS)).toBe(seen);
    expect(after.pages).not.toBe(before.pages);
  });
});

describe('what is kept for callers while entries change', () => {
  const OTHER = '{"org":["other"]}';
  const start = (): { readonly engine: ReadEngine; readonly publish: (entry: StoredEntry) => void } => {
    const engine = new ReadEngine([{ name: 'all', sources: ['one'], claims: '' }]);
    const first = ['a', 'b'].map((name) => entryOf('server', name, 'x', ACME));
    engine.update({ blocks: [buildBlock('one', [...first, entryOf('server', 'c', 'x', OTHER)])] });
    const publish = (entry: StoredEntry): void => {
      const block = engine.blocks().get('one');
      if (block === undefined) throw new Error('the block is there');
      const changed = new Map([['one', changedKeys([entry])]]);
      engine.update({ blocks: [patchBlock(block, [entry], [entry])], changed });
    };
    return { engine, publish };
  };
  const stateOf = (engine: ReadEngine, authority: Authority): ViewState => {
    const { pages, visibility } = engine.current();
    return pages.stateOf('all', visibility(authority));
  };

  test('is not ended by what is only prepared, of claims not seen before either, nor by what comes instead', () => {
    const { engine, publish } = start();
    const acme = caller({ org: 'acme' });
    const [before, { pages }, blocks] = [stateOf(engine, acme), engine.current(), engine.blocks()];
    const block = blocks.get('one');
    if (block === undefined) throw new Error('the block is there');
    for (const claims of [ACME, '{"org":["third"]}']) {
      const entry = entryOf('server', 'd', 'x', claims);
      const changed = new Map([['one', changedKeys([entry])]]);
      engine.prepare({ blocks: [patchBlock(block, [entry], [entry])], changed });
    }
    expect(before.isOver).toBe(false);
    expect(engine.blocks()).toBe(blocks);
    publish(entryOf('server', 'e', 'x', OTHER));
    expect(engine.current().pages.follows(pages)).toBe(true);
    expect(stateOf(engine, acme)).toBe(before);
  });

  test('is not ended by a publish that the caller does not see, nor by one of claims not seen before', () => {
    const { engine, publish } = start();
    const acme = caller({ org: 'acme' });
    const before = stateOf(engine, acme);
    publish(entryOf('server', 'd', 'x', OTHER));
    expect(stateOf(engine, acme)).toBe(before);
    publish(entryOf('server', 'e', 'x', '{"org":["third"]}'));
    expect(stateOf(engine, acme)).toBe(before);
    expect(engine.current().visibility(caller({ org: 'third' })).classes).toHaveLength(1);
  });

  test('is ended by a publish that the caller sees, and by one that takes something out of its sight', () => {
    const { engine, publish } = start();
    const acme = caller({ org: 'acme' });
    const first = stateOf(engine, acme);
    publish(entryOf('server', 'd', 'x', ACME));
    const second = stateOf(engine, acme);
    expect(second).not.toBe(first);
    publish(entryOf('server', 'a', 'x', OTHER));
    expect(stateOf(engine, acme)).not.toBe(second);
  });
});
