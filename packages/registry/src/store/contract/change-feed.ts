import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Revision } from '../changes.ts';
import type { Store } from '../store.ts';
import {
  ACME,
  allowed,
  type Fixture,
  publishOf,
  replacementOf,
  serverOf,
  settingsOf,
  sourceOf,
} from './fixture.ts';

const ENTRY = { kind: 'server', namespace: '' } as const;

export function changeFeed(fixture: Fixture): void {
  describe('change feed', () => {
    beforeEach(() =>
      fixture.store.reconcile({
        sources: [sourceOf('one'), sourceOf('internal', 'managed')],
        registries: [{ name: 'all', sources: ['one'], claims: '' }],
      }),
    );
    tellsWhatChanged(fixture);
    showsWhatItCounts(fixture);
    tellsThatSomethingChanged(fixture);
  });
}

function tellsWhatChanged(fixture: Fixture): void {
  test('tells everything to whoever knows nothing, or more than there is', async () => {
    const { revision } = await fixture.store.changesSince(0);
    expect(await fixture.store.changesSince(0)).toEqual({ kind: 'everything', revision });
    expect(await fixture.store.changesSince(revision + 1)).toEqual({ kind: 'everything', revision });
    expect(await fixture.store.changesSince(revision)).toEqual({
      kind: 'some',
      revision,
      sources: [],
      registries: [],
      entries: [],
    });
  });

  test('names what was committed since a revision, each thing once, entries only where their source is not named', async () => {
    const { store } = fixture;
    const { revision: start } = await store.changesSince(0);
    await store.publish(publishOf('a/a', '1'), allowed);
    await store.publish(publishOf('a/a', '2'), allowed);
    await store.publish(publishOf('b/b', '1'), allowed);
    const middle = await store.putSource('made', settingsOf('file'), allowed);
    await store.replaceEntries(replacementOf('made', [serverOf('s/s', { '1': '{}' })], 'T1'));
    await store.putRegistry('mine', { sources: ['made'], claims: ACME }, allowed);
    const { revision } = await store.deleteRegistry('mine', allowed);
    expect(revision).toBe(start + 7);
    expect(await store.changesSince(start)).toEqual({
      kind: 'some',
      revision,
      sources: ['made'],
      registries: ['mine'],
      entries: [
        { source: 'internal', ...ENTRY, name: 'a/a' },
        { source: 'internal', ...ENTRY, name: 'b/b' },
      ],
    });
    expect(await store.changesSince(middle.revision)).toMatchObject({ sources: ['made'], entries: [] });
    await store.reconcile({ sources: [], registries: [] });
    expect(await store.changesSince(start)).toMatchObject({
      sources: ['made', 'internal', 'one'],
      registries: ['mine', 'all'],
      entries: [],
    });
  });
}

function showsWhatItCounts(fixture: Fixture): void {
  test('never shows a revision before what it stands for, whoever writes', async () => {
    const { store } = fixture;
    const other = await fixture.another();
    const { revision: start } = await store.changesSince(0);
    const writing = Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        (index % 2 === 0 ? store : other).publish(publishOf(`n/${index}`, '1'), allowed),
      ),
    );
    const seen = new Set<string>();
    let at = start;
    const follow = async (): Promise<void> => {
      const changes = await store.changesSince(at);
      if (changes.kind === 'everything') throw new Error('the record should reach back');
      for (const { name } of await store.readSomeEntries('internal', changes.entries)) seen.add(name);
      at = changes.revision;
    };
    const writers = { busy: true };
    void writing.finally(() => (writers.busy = false));
    while (writers.busy) {
      await follow();
      // A store in this thread answers without giving way to anybody.
      await setImmediate();
    }
    await writing;
    await follow();
    expect(seen.size).toBe(40);
  });
}

function tellsThatSomethingChanged(fixture: Fixture): void {
  test('tells listeners of this process and of others of a commit', async () => {
    const other = await fixture.another();
    const here = revisionsOf(fixture.store);
    const there = revisionsOf(other);
    const { revision } = await fixture.store.publish(publishOf('a/a', '1'), allowed);
    await Promise.all([here.reached(revision), there.reached(revision)]);
    const back = await other.publish(publishOf('a/a', '2'), allowed);
    await Promise.all([here.reached(back.revision), there.reached(back.revision)]);
    here.end();
    there.end();
  });

  test('tells no more when the listener has ended', async () => {
    const ended = revisionsOf(fixture.store);
    const other = revisionsOf(fixture.store);
    await ended.reached(1);
    ended.end();
    const { revision } = await fixture.store.publish(publishOf('a/a', '1'), allowed);
    await other.reached(revision);
    expect(ended.newest()).toBeLessThan(revision);
    other.end();
  });
}

/** Listens to a store and waits for revisions. */
function revisionsOf(store: Store): {
  reached(revision: Revision): Promise<void>;
  newest(): Revision;
  end(): void;
} {
  let newest = 0;
  const waiting = new Set<() => void>();
  const end = store.onChange((revision) => {
    newest = Math.max(newest, revision);
    for (const check of waiting) check();
  });
  return {
    end,
    newest: () => newest,
    reached: (revision) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (newest < revision) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}
