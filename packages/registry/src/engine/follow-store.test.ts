import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  allowed,
  publishOf,
  replacementOf,
  serverOf,
  sourceOf,
  steppedClock,
  turnsDuring,
} from '../store/contract/fixture.ts';
import type { WrittenEntries } from '../store/changes.ts';
import { IN_MEMORY } from '../store/sqlite/private-file.ts';
import { openSqlite, type SqliteStore } from '../store/sqlite/sqlite.ts';
import { StoreFollower } from './follow-store.ts';
import { ReadEngine } from './read-engine.ts';
import type { KeyGroup } from './snapshot.ts';

/** What a follower reads the store by. */
const READS = ['changesSince', 'listSources', 'listRegistries', 'visitEntries', 'readSomeEntries'] as const;

describe('StoreFollower', () => {
  let store: SqliteStore;
  let engine: ReadEngine;
  let follower: StoreFollower;
  beforeEach(async () => {
    store = await openSqlite({ path: IN_MEMORY, clock: steppedClock(), log: silentLog });
    await store.reconcile({
      sources: [sourceOf('internal', 'managed'), sourceOf('catalog')],
      registries: [
        { name: 'all', sources: ['internal', 'catalog'], claims: '' },
        { name: 'synced', sources: ['catalog'], claims: '' },
      ],
    });
    await store.replaceEntries(replacementOf('catalog', [serverOf('c/c', { '1': '{}' })], 'T1'));
    await store.publish(publishOf('b/b', '1'), allowed);
    engine = new ReadEngine([]);
    follower = new StoreFollower({ store, engine, log: silentLog, onSources: () => undefined });
    await follower.start();
  });
  afterEach(async () => {
    await follower.close();
    await store.close();
  });

  const groups = (registry: string): readonly KeyGroup[] => [
    ...(engine.current().registries.get(registry)?.groups.server.all ?? []),
  ];

  test('shows a publish without touching what it is not about', async () => {
    const [before, synced] = [groups('all'), engine.current().registries.get('synced')];
    expect(before.map(({ key }) => key)).toEqual(['b/b', 'c/c']);
    const { revision } = await store.publish(publishOf('a/a', '1'), allowed);
    await follower.reach(revision);
    const after = groups('all');
    expect(after.map(({ key }) => key)).toEqual(['a/a', 'b/b', 'c/c']);
    expect([after[1], after[2]].map((group, index) => group === before[index])).toEqual([true, true]);
    expect(engine.current().registries.get('synced')).toBe(synced);
  });

  test('serves what this process publishes without reading anything back, also an entry with versions', async () => {
    const reads = READS.map((name) => vi.spyOn(store, name));
    const several = ['2', '3', '4'].map((version) => store.publish(publishOf('b/b', version), allowed));
    for (const { revision } of await Promise.all(several)) await follower.reach(revision);
    const { revision } = await store.publish(publishOf('a/a', '1'), allowed);
    await follower.reach(revision);
    expect(reads.flatMap(({ mock }) => mock.calls)).toEqual([]);
    const shown = groups('all').map(({ key, candidates: [{ entry }] }) => [
      key,
      entry.versions.map(({ version, isLatest }) => `${version}${isLatest ? ' latest' : ''}`),
    ]);
    expect(shown).toEqual([
      ['a/a', ['1 latest']],
      ['b/b', ['1', '2', '3', '4 latest']],
      ['c/c', ['1 latest']],
    ]);
  });

  test('never says that a publish is served before it is, not even when taking it over fails at first', async () => {
    const update = vi.spyOn(engine, 'update').mockImplementationOnce(() => {
      throw new Error('out of memory');
    });
    const { revision } = await store.publish(publishOf('a/a', '1'), allowed);
    await follower.reach(revision).catch(() => undefined);
    await follower.reach(revision);
    expect(update).toHaveBeenCalledTimes(2);
    expect(groups('all').map(({ key }) => key)).toEqual(['a/a', 'b/b', 'c/c']);
  });

  describe('what was prepared while a commit was under way', () => {
    /** Prepares for what a commit leaves when it is told, and before that for what `failed` makes of it. */
    const prepared = async (failed?: (written: WrittenEntries) => WrittenEntries) => {
      await follower.close();
      const onChange = store.onChange.bind(store);
      vi.spyOn(store, 'onChange').mockImplementationOnce((listener, prepare) =>
        onChange((revision, written) => {
          if (written !== undefined && written.changed !== 'all') {
            if (failed !== undefined) prepare?.(failed(written));
            prepare?.(written);
          }
          listener(revision, written);
        }),
      );
      follower = new StoreFollower({ store, engine, log: silentLog, onSources: () => undefined });
      await follower.start();
      const update = vi.spyOn(engine, 'update');
      const { revision } = await store.publish(publishOf('a/a', '1'), allowed);
      await follower.reach(revision);
      expect(groups('all').map(({ key }) => key)).toEqual(['a/a', 'b/b', 'c/c']);
      return update;
    };

    test('is held no longer than what was served then, where that commit failed', async () => {
      setFlagsFromString('--expose-gc');
      const gc = runInNewContext('gc') as () => void;
      await follower.close();
      const onChange = vi.spyOn(store, 'onChange');
      follower = new StoreFollower({ store, engine, log: silentLog, onSources: () => undefined });
      await follower.start();
      const [, prepare] = onChange.mock.lastCall ?? [];
      const entries = (await store.readEntries('internal')).slice(0, 1);
      prepare?.({ source: 'internal', changed: entries, entries });
      const served = new WeakRef(engine.current());
      await store.replaceEntries(replacementOf('catalog', [serverOf('d/d', { '1': '{}' })], 'T2'));
      await follower.catchUp();
      expect(groups('all').map(({ key }) => key)).toEqual(['b/b', 'd/d']);
      // A weak reference holds until the turn of the loop is over.
      await setImmediate();
      gc();
      expect(served.deref()).toBeUndefined();
    });

    test('is served', async () => {
      expect(await prepared()).not.toHaveBeenCalled();
    });

    test('is not served where that commit failed', async () => {
      expect(await prepared((written) => ({ ...written, entries: [] }))).toHaveBeenCalledOnce();
    });
  });

  test('reads what it does not know, where somebody else has committed in between', async () => {
    const sources = [sourceOf('internal', 'managed'), sourceOf('catalog')];
    await store.reconcile({ sources, registries: [{ name: 'all', sources: ['internal'], claims: '' }] });
    const { revision } = await store.publish(publishOf('a/a', '1'), allowed);
    await follower.reach(revision);
    expect(groups('all').map(({ key }) => key)).toEqual(['a/a', 'b/b']);
    expect(engine.current().registries.has('synced')).toBe(false);
  });

  test('never puts back what it has read, by a commit of this process that came before it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'follower-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const place = { path: join(folder, 'registry.db'), clock: steppedClock(), log: silentLog };
    const [own, other] = [await openSqlite(place), await openSqlite(place)];
    onTestFinished(async () => void (await Promise.all([own.close(), other.close()])));
    await own.reconcile({ sources: [sourceOf('internal', 'managed')], registries: [] });
    const shown = new ReadEngine([]);
    const following = new StoreFollower({
      store: own,
      engine: shown,
      log: silentLog,
      onSources: () => undefined,
    });
    onTestFinished(() => following.close());
    await own.publish(publishOf('b/b', '1'), allowed);
    await following.start();
    const numbers: number[] = [];
    const update = shown.update.bind(shown);
    vi.spyOn(shown, 'update').mockImplementation((change) => {
      update(change);
      numbers.push(shown.blocks().get('internal')?.entries.server.find('b/b')?.versions.length ?? 0);
    });
    const read = own.readSomeEntries.bind(own);
    vi.spyOn(own, 'readSomeEntries').mockImplementationOnce(async (...asked) => {
      // Between the look for changes and the read of what they left.
      await own.publish(publishOf('b/b', '3'), allowed);
      await other.publish(publishOf('b/b', '4'), allowed);
      return read(...asked);
    });
    await other.publish(publishOf('b/b', '2'), allowed);
    await following.catchUp();
    await following.catchUp();
    expect(numbers).toEqual(numbers.toSorted((one, another) => one - another));
    expect(numbers.at(-1)).toBe(4);
  });

  test('lets other requests have their turn while it takes over very many versions, also of one entry', async () => {
    const versions = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [String(index), '{}']));
    const reads = READS.slice(3).map((name) => vi.spyOn(store, name));
    const { revision } = await store.replaceEntries(
      replacementOf('catalog', [serverOf('c/c', versions), serverOf('d/d', { '1': '{}' })], 'T2'),
    );
    const turns = await turnsDuring(() => follower.reach(revision));
    expect(reads.flatMap(({ mock }) => mock.calls)).toEqual([]);
    expect(turns).toBeGreaterThanOrEqual(10);
    expect(groups('all').map(({ key, candidates: [{ entry }] }) => [key, entry.versions.length])).toEqual([
      ['b/b', 1],
      ['c/c', 10_000],
      ['d/d', 1],
    ]);
  });

  test('takes an entry away with its last version, and shows what it hid', async () => {
    const { revision: shadowed } = await store.publish(publishOf('c/c', '2'), allowed);
    await follower.reach(shadowed);
    const versions = () =>
      groups('all').map(({ key, candidates: [{ entry }] }) => [key, entry.versions[0]?.version]);
    expect(versions()).toEqual([
      ['b/b', '1'],
      ['c/c', '2'],
    ]);
    const address = { kind: 'server', namespace: '', name: 'c/c' } as const;
    const { revision } = await store.deleteVersion(address, '2', ([entry]) => {
      if (entry === undefined) throw new Error('the entry is there');
      return entry;
    });
    await follower.reach(revision);
    expect(versions()).toEqual([
      ['b/b', '1'],
      ['c/c', '1'],
    ]);
  });
});
