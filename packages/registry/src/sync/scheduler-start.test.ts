import { utcTime } from '@skep/core/time/clock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Source } from '../sources/source.ts';
import { replacementOf, serverOf, statusAt } from '../store/contract/fixture.ts';
import type { NamedSource, StoredSource } from '../store/rows.ts';
import { openSqlite, type SqliteStore } from '../store/sqlite/sqlite.ts';
import { firstStatus } from '../store/writes/statuses.ts';
import { LEASE_MS } from './lease.ts';
import { catalogue, named, schedulerOf } from './scheduler.fixture.ts';
import type { SyncScheduler } from './scheduler.ts';
import { type ManualClock, manualClock } from '@skep/core/time/doubles/manual-clock.ts';

let clock: ManualClock;
let store: SqliteStore;
let content: string;
let fetches: number;
const schedulers: SyncScheduler[] = [];

beforeEach(async () => {
  clock = manualClock();
  content = catalogue('a/a');
  fetches = 0;
  store = await openSqlite({ path: ':memory:', clock, log: silentLog });
});
afterEach(async () => {
  await Promise.all(schedulers.splice(0).map((scheduler) => scheduler.close()));
  await store.close();
});

/** A place that holds `content`. */
const open = ({ name }: Pick<StoredSource, 'name'>): Source => ({
  label: name,
  fetch: () => {
    fetches += 1;
    return Promise.resolve({ bytes: Buffer.from(content), hash: content });
  },
});

/** One that takes connections and says nothing. */
const hanging = ({ name }: StoredSource): Source => ({
  label: name,
  fetch: (signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('stopped')));
    }),
});

function scheduler(opener: (source: StoredSource) => Source = open): SyncScheduler {
  const owner = `replica ${schedulers.length}`;
  const made = schedulerOf({ store, clock, owner, open: opener });
  schedulers.push(made);
  return made;
}

async function configured(...sources: readonly NamedSource[]): Promise<readonly StoredSource[]> {
  await store.reconcile({ sources, registries: [] });
  return store.listSources();
}

const names = async (): Promise<string[]> => (await store.readEntries('one')).map(({ name }) => name);

const until = (check: () => void | Promise<void>): Promise<void> => vi.waitFor(check, { interval: 1 });

test('is not ready with nothing to serve while another replica loads a source', async () => {
  const lease = { source: 'one', owner: 'another' };
  const sources = await configured(named('one'));
  await store.acquireLease(lease, LEASE_MS);
  await store.writeStatus('one', { ...firstStatus('git'), phase: 'syncing' }, lease);
  const isReady = vi.fn();
  const started = scheduler().start(sources).then(isReady);
  await until(() => expect(clock.nextIn).toBe(500));
  expect(isReady).not.toHaveBeenCalled();
  const entries = [serverOf('c/c', { '1': '{}' })];
  await store.replaceEntries({ ...replacementOf('one', entries, utcTime(clock)), lease });
  clock.pass(500);
  await started;
  expect([await names(), fetches]).toEqual([['c/c'], 0]);
});

test('is not ready with nothing to serve because the store was busy with another replica at its first look', async () => {
  const sources = await configured(named('one'));
  const busy = vi.spyOn(store, 'acquireLease').mockRejectedValueOnce(new SkepError('store/locked'));
  const isReady = vi.fn();
  const started = scheduler().start(sources).then(isReady);
  await until(() => expect(clock.nextIn).toBe(500));
  expect([busy.mock.calls.length, isReady.mock.calls.length]).toEqual([1, 0]);
  clock.pass(500);
  await started;
  expect(await names()).toEqual(['a/a']);
});

test('takes over from a replica that was killed while it loaded a source, and is ready with the entries', async () => {
  const sources = await configured(named('one'));
  await store.acquireLease({ source: 'one', owner: 'killed' }, LEASE_MS);
  const isReady = vi.fn();
  const started = scheduler().start(sources).then(isReady);
  await until(() => {
    clock.pass(500);
    expect(isReady).toHaveBeenCalled();
  });
  await started;
  expect(await names()).toEqual(['a/a']);
});

test('forgets at an embedded store what a process that was killed was at, so the start need not wait', async () => {
  const sources = await configured(named('one'));
  await store.acquireLease({ source: 'one', owner: 'killed' }, LEASE_MS);
  await store.forgetLeases();
  await scheduler().start(sources);
  expect(await names()).toEqual(['a/a']);
});

test('looks again soon when its lease was taken away, whatever the interval', async () => {
  const gate = Promise.withResolvers<void>();
  const slow = (source: StoredSource): Source => ({
    ...open(source),
    fetch: async (signal) => {
      await gate.promise;
      return open(source).fetch(signal);
    },
  });
  const started = scheduler(slow).start(await configured(named('one')));
  await until(async () => expect(await store.readStatus('one')).toMatchObject({ phase: 'syncing' }));
  await store.forgetLeases();
  gate.resolve();
  await until(async () => {
    clock.pass(500);
    expect(await names()).toEqual(['a/a']);
  });
  await started;
});

test('has one bound for a first start, however many places never answer, and local files do not wait for them', async () => {
  const away = Array.from({ length: 40 }, (_, index) => named(`away-${index}`));
  const file = named('one', { kind: 'file', config: '{"path":"/c.json"}' });
  const sources = await configured(...away, file);
  const isReady = vi.fn();
  const started = scheduler((source) => (source.name === 'one' ? open(source) : hanging(source)))
    .start(sources)
    .then(isReady);
  await until(async () => expect(await names()).toEqual(['a/a']));
  clock.pass(29_999);
  await store.ping();
  expect(isReady).not.toHaveBeenCalled();
  clock.pass(1);
  await started;
});

test('does not hold a start for places that never answer and whose entries are stored', async () => {
  const away = Array.from({ length: 40 }, (_, index) => named(`away-${index}`));
  const file = named('one', { kind: 'file', config: '{"path":"/c.json"}' });
  const sources = await configured(...away, file);
  for (const { name } of away) await store.writeStatus(name, statusAt(utcTime(clock)));
  await scheduler((source) => (source.name === 'one' ? open(source) : hanging(source))).start(sources);
  expect(await names()).toEqual(['a/a']);
});

test('looks once more when it is asked during a look, which may have read what was there before', async () => {
  const read = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const slow = (source: StoredSource): Source => ({
    ...open(source),
    fetch: async (signal) => {
      const found = await open(source).fetch(signal);
      read.resolve();
      await gate.promise;
      return found;
    },
  });
  const syncing = scheduler(slow);
  const started = syncing.start(await configured(named('one')));
  await read.promise;
  content = catalogue('b/b');
  await syncing.syncNow('one');
  content = catalogue('c/c');
  await syncing.syncNow('one');
  gate.resolve();
  await started;
  await until(async () => expect(await names()).toEqual(['c/c']));
  expect(fetches).toBe(2);
});
