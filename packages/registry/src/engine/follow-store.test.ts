import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  allowed,
  publishOf,
  replacementOf,
  serverOf,
  sourceOf,
  SteppedClock,
} from '../store/contract/fixture.ts';
import { IN_MEMORY } from '../store/sqlite-path.ts';
import { openSqlite, type SqliteStore } from '../store/sqlite.ts';
import { StoreFollower } from './follow-store.ts';
import { ReadEngine } from './read-engine.ts';
import type { KeyGroup } from './snapshot.ts';

describe('StoreFollower', () => {
  let store: SqliteStore;
  let engine: ReadEngine;
  let follower: StoreFollower;
  beforeEach(async () => {
    store = await openSqlite({ path: IN_MEMORY, clock: new SteppedClock(), log: silentLog });
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

  const groups = (registry: string): readonly KeyGroup[] =>
    engine.current().registries.get(registry)?.groups.server.all ?? [];

  it('shows a publish without touching what it is not about', async () => {
    const [before, synced] = [groups('all'), engine.current().registries.get('synced')];
    expect(before.map(({ key }) => key)).toEqual(['b/b', 'c/c']);
    const { revision } = await store.publish(publishOf('a/a', '1'), allowed);
    await follower.reach(revision);
    const after = groups('all');
    expect(after.map(({ key }) => key)).toEqual(['a/a', 'b/b', 'c/c']);
    expect([after[1], after[2]].map((group, index) => group === before[index])).toEqual([true, true]);
    expect(engine.current().registries.get('synced')).toBe(synced);
  });

  it('takes an entry away with its last version, and shows what it hid', async () => {
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
