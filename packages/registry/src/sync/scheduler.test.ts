import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { manualClock, type ManualClock } from '@skep/core/time/doubles/manual-clock.ts';
import type { Source } from '../sources/source.ts';
import type { NamedSource, StoredSource, SyncStatus } from '../store/rows.ts';
import { openSqlite, type SqliteStore } from '../store/sqlite/sqlite.ts';
import { firstStatus } from '../store/writes/statuses.ts';
import { LEASE_MS } from './lease.ts';
import { catalogue, named, schedulerOf } from './scheduler.fixture.ts';
import type { SyncScheduler } from './scheduler.ts';
import type { SyncEvent } from './source-loop.ts';
import { syncLimit, waitFor } from './status.ts';

const MINUTE = 60_000;
let clock: ManualClock;
let store: SqliteStore;
let content: string | Error;
let fetches: number;
let events: SyncEvent[];
const schedulers: SyncScheduler[] = [];

beforeEach(async () => {
  clock = manualClock();
  content = catalogue('a/a', 'b/b');
  fetches = 0;
  events = [];
  store = await openSqlite({ path: ':memory:', clock, log: silentLog });
});
afterEach(async () => {
  await Promise.all(schedulers.splice(0).map((scheduler) => scheduler.close()));
  await store.close();
});

/** A place that holds `content`. */
const open = ({ name }: StoredSource): Source => ({
  label: name,
  fetch: async () => {
    fetches += 1;
    if (content instanceof Error) throw content;
    const bytes = Buffer.from(content);
    return Promise.resolve({ bytes, hash: content });
  },
});

function scheduler(owner = 'one', opener = open): SyncScheduler {
  const made = schedulerOf({ store, clock, owner, open: opener, observe: (event) => events.push(event) });
  schedulers.push(made);
  return made;
}

/** Makes the store hold exactly these sources, and returns them. */
async function configured(...sources: readonly NamedSource[]): Promise<readonly StoredSource[]> {
  await store.reconcile({ sources, registries: [] });
  return store.listSources();
}

async function status(name = 'one'): Promise<SyncStatus | undefined> {
  return store.readStatus(name);
}

const names = async (): Promise<string[]> => (await store.readEntries('one')).map(({ name }) => name);

/** Lets what was set off end; the store answers within some turns of the event loop. */
const until = (check: () => void | Promise<void>): Promise<void> => vi.waitFor(check, { interval: 1 });

describe('waitFor', () => {
  test.each([
    [10 * MINUTE, 0, 0.5, 10 * MINUTE],
    [10 * MINUTE, 0, 0, 9 * MINUTE],
    [10 * MINUTE, 1, 0.5, 10 * MINUTE],
    [10 * MINUTE, 2, 0.5, 20 * MINUTE],
    [10 * MINUTE, 4, 0.5, 80 * MINUTE],
    [10 * MINUTE, 99, 0.5, 80 * MINUTE],
    [120 * MINUTE, 4, 0.5, 360 * MINUTE],
    [600 * MINUTE, 4, 0.5, 600 * MINUTE],
  ])('of interval %d after %d failures, chance %d, is %d', (interval, failures, random, expected) => {
    expect(waitFor(interval, failures, random)).toBe(expected);
  });

  test.each([
    [1000, 10_000],
    [MINUTE, MINUTE],
    [60 * MINUTE, 5 * MINUTE],
    [null, 5 * MINUTE],
  ])('a synchronisation every %s ms may take %d ms', (interval, expected) => {
    expect(syncLimit(interval)).toBe(expected);
  });
});

describe('the scheduler', () => {
  test('looks at every source at start, and then at its interval', async () => {
    const syncing = scheduler();
    await syncing.start(await configured(named('one')));
    expect(await names()).toEqual(['a/a', 'b/b']);
    expect(await status()).toMatchObject({
      phase: 'complete',
      message: 'Sync completed successfully',
      attemptCount: 0,
      changed: true,
      counts: { server: 2, skill: 0, plugin: 0 },
      nextSync: '2026-01-01T00:10:00.000Z',
    });
    content = catalogue('c/c');
    clock.pass(10 * MINUTE - 1);
    expect(fetches).toBe(1);
    clock.pass(1);
    await until(async () => expect(await names()).toEqual(['c/c']));
    expect(events.map(({ source, outcome }) => [source, outcome])).toEqual([
      ['one', 'success'],
      ['one', 'success'],
    ]);
  });

  test('writes nothing but the status when nothing changed', async () => {
    const syncing = scheduler();
    await syncing.start(await configured(named('one')));
    const { revision } = await store.changesSince(0);
    clock.pass(10 * MINUTE);
    await until(async () => expect(await status()).toMatchObject({ phase: 'complete', changed: false }));
    expect(await store.changesSince(0)).toMatchObject({ revision });
    expect(await status()).toMatchObject({
      counts: { server: 2 },
      lastSync: '2026-01-01T00:10:00.000Z',
      lastSuccess: '2026-01-01T00:10:00.000Z',
    });
  });

  test('keeps data and counts while a source fails, counts the failures, waits longer, and recovers', async () => {
    const syncing = scheduler();
    await syncing.start(await configured(named('one')));
    content = new SkepError('source/unreachable', { message: 'no route' });
    for (const [failures, wait] of [
      [1, 10],
      [2, 20],
      [3, 40],
      [4, 80],
      [5, 80],
    ]) {
      clock.pass(clock.nextIn ?? 0);
      await until(async () => expect((await status())?.attemptCount).toBe(failures));
      await until(() => expect(clock.nextIn).toBe((wait ?? 0) * MINUTE));
    }
    expect(await names()).toEqual(['a/a', 'b/b']);
    expect(await status()).toMatchObject({ phase: 'failed', message: 'no route', counts: { server: 2 } });
    expect(events.at(-1)).toMatchObject({ outcome: 'error', failure: 'FetchFailed' });
    content = catalogue('a/a');
    clock.pass(clock.nextIn ?? 0);
    await until(async () => expect(await status()).toMatchObject({ phase: 'complete', attemptCount: 0 }));
  });

  test.each([
    ['{', 'ValidationFailed'],
    [new SkepError('source/invalid-ref'), 'HandlerCreationFailed'],
    [new SkepError('store/failed'), 'StorageFailed'],
    [new Error('boom'), 'FetchFailed'],
  ])('classes the failure %s as %s', async (broken, failure) => {
    content = broken;
    await scheduler().start(await configured(named('one')));
    expect(events).toMatchObject([{ outcome: 'error', failure }]);
  });

  test('takes no more bytes than the limits allow', async () => {
    content = catalogue('a/a').padEnd(100_001);
    const syncing = scheduler();
    const file = named('one', { kind: 'file', config: '{"path":"/c.json"}' });
    await expect(syncing.start(await configured(file))).rejects.toMatchObject({
      code: 'registry/no-first-sync',
      message: expect.stringContaining('at most 100000 are read'),
    });
    expect(await names()).toEqual([]);
  });

  test('starts without a place that does not answer, but not without a file that was never loaded', async () => {
    content = new SkepError('source/unreachable', { message: 'no route' });
    const syncing = scheduler();
    await syncing.start(await configured(named('one')));
    expect(await status()).toMatchObject({ phase: 'failed' });
    const file = named('two', { kind: 'file', config: '{"path":"/c.json"}' });
    await expect(scheduler('two').start(await configured(file))).rejects.toMatchObject({
      code: 'registry/no-first-sync',
    });
  });

  test('starts without a file that somebody named through the API and that was never there', async () => {
    content = new SkepError('file/not-found', { message: 'no such file' });
    const { kind, config, format, filter, interval, claims } = named('one', {
      kind: 'file',
      config: '{"path":"/c.json"}',
    });
    await store.putSource('one', { kind, config, format, filter, interval, claims }, () => undefined);
    await scheduler().start(await store.listSources());
    expect(await status()).toMatchObject({ phase: 'failed', message: 'no such file' });
    content = catalogue('a/a');
    clock.pass(10 * MINUTE);
    await until(async () => expect(await names()).toEqual(['a/a']));
  });

  test('remembers a place between turns, and forgets what it remembers when it is asked', async () => {
    let opened = 0;
    const syncing = scheduler('one', (stored) => {
      opened += 1;
      return open(stored);
    });
    await syncing.start(await configured(named('one')));
    clock.pass(10 * MINUTE);
    await until(() => expect(fetches).toBe(2));
    await until(async () => expect((await status())?.phase).toBe('complete'));
    expect(opened).toBe(1);
    await until(() => expect(clock.nextIn).toBe(10 * MINUTE));
    await syncing.syncNow('one');
    await until(() => expect(fetches).toBe(3));
    expect(opened).toBe(2);
  });

  test('reads again when the filter changes though the data did not', async () => {
    const syncing = scheduler();
    await syncing.start(await configured(named('one')));
    syncing.update(await configured(named('one', { filter: '{"names":{"exclude":["b/*"]}}' })));
    await until(async () => expect(await names()).toEqual(['a/a']));
  });

  test('passes changed claims on without new data', async () => {
    const syncing = scheduler();
    await syncing.start(await configured(named('one')));
    syncing.update(await configured(named('one', { claims: '{"org":["acme"]}' })));
    expect((await store.readEntries('one')).map(({ claims }) => claims)).toEqual([
      '{"org":["acme"]}',
      '{"org":["acme"]}',
    ]);
  });

  test('looks at a new source at once and forgets one that is gone', async () => {
    const syncing = scheduler();
    await syncing.start(await configured());
    syncing.update(await configured(named('one')));
    await until(async () => expect(await names()).toHaveLength(2));
    syncing.update(await configured());
    await until(() => expect(clock.nextIn).toBeUndefined());
    await expect(syncing.syncNow('one')).rejects.toMatchObject({ code: 'store/source-unknown' });
  });

  test('never synchronises managed sources', async () => {
    await scheduler().start(
      await configured(named('one', { kind: 'managed', config: '{}', interval: null })),
    );
    expect(fetches).toBe(0);
    expect(await status()).toMatchObject({ phase: 'complete', message: 'Non-synced source (type: managed)' });
  });

  test('leaves a turn out when another replica has just been there, but not when it is asked', async () => {
    const [source] = await configured(named('one'));
    if (source === undefined) throw new Error('no source');
    const one = scheduler('one');
    const two = scheduler('two');
    await one.start([source]);
    await two.start([source]);
    await until(() => expect(clock.nextIn).toBe(10 * MINUTE));
    await until(() => expect(fetches).toBe(2));
    await until(async () => expect((await status())?.phase).toBe('complete'));
    clock.pass(10 * MINUTE);
    // One of them looks, the other finds that it does, and soon that it has.
    await until(() => expect(clock.nextIn).toBe(LEASE_MS / 2));
    await until(async () => expect((await status())?.phase).toBe('complete'));
    clock.pass(LEASE_MS / 2);
    await until(() => expect([clock.waiting, clock.nextIn]).toEqual([2, 10 * MINUTE - LEASE_MS / 2]));
    expect(fetches).toBe(3);
    await two.syncNow('one');
    await until(() => expect(fetches).toBe(4));
  });

  test('does not look while another replica holds the lease, and takes over soon after that one has died', async () => {
    const sources = await configured(named('one'));
    await store.writeStatus('one', { ...firstStatus('git'), phase: 'syncing', contentHash: 'stored' });
    await store.acquireLease({ source: 'one', owner: 'dead' }, LEASE_MS);
    await scheduler().start(sources);
    await until(() => expect(clock.nextIn).toBe(LEASE_MS / 2));
    clock.pass(LEASE_MS / 2);
    await until(() => expect(clock.nextIn).toBe(LEASE_MS / 2));
    expect(fetches).toBe(0);
    clock.pass(LEASE_MS / 2);
    await until(async () => expect(await names()).toHaveLength(2));
  });

  test('looks when it was asked to, also if another replica was just finishing a look', async () => {
    const syncing = scheduler();
    await syncing.start(await configured(named('one')));
    const other = { source: 'one', owner: 'other' };
    await store.acquireLease(other, LEASE_MS);
    content = catalogue('c/c');
    await syncing.syncNow('one');
    await until(() => expect(clock.nextIn).toBe(LEASE_MS / 2));
    await store.releaseLease(other);
    clock.pass(LEASE_MS / 2);
    await until(async () => expect(await names()).toEqual(['c/c']));
  });

  test('does again what another replica died at, though the next turn would be later', async () => {
    const sources = await configured(named('one'));
    const one = scheduler('one');
    await one.start(sources);
    await one.close();
    const before = await status();
    if (before === undefined) throw new Error('it has a status');
    await store.writeStatus('one', { ...before, phase: 'syncing' });
    await store.acquireLease({ source: 'one', owner: 'dead' }, LEASE_MS);
    const two = scheduler('two');
    await two.start(sources);
    clock.pass(LEASE_MS / 2);
    await until(() => expect(clock.nextIn).toBe(LEASE_MS / 2));
    clock.pass(LEASE_MS / 2);
    await until(async () => expect(await status()).toMatchObject({ phase: 'complete', changed: false }));
    expect(fetches).toBe(2);
  });

  test('ends a look that takes too long, and says so', async () => {
    const hanging = (stored: StoredSource): Source => ({
      ...open(stored),
      fetch: (signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
        }),
    });
    const syncing = scheduler('one', hanging);
    const started = syncing.start(await configured(named('one')));
    await until(async () => expect((await status())?.phase).toBe('syncing'));
    clock.pass(5 * MINUTE);
    await started;
    await until(async () =>
      expect(await status()).toMatchObject({
        phase: 'failed',
        message: 'source "one" was not synchronised within 300 s',
      }),
    );
  });

  test('stops in the middle as if it had not begun, and gives its lease up', async () => {
    const hanging = (stored: StoredSource): Source => ({
      ...open(stored),
      fetch: (signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
        }),
    });
    const sources = await configured(named('one'));
    const before = await status();
    const syncing = scheduler('one', hanging);
    void syncing.start(sources);
    await until(async () => expect((await status())?.phase).toBe('syncing'));
    await syncing.close();
    expect(await status()).toEqual(before);
    expect(await store.acquireLease({ source: 'one', owner: 'two' }, 1000)).toBe(true);
  });
});
