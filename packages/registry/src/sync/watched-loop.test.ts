import { setImmediate } from 'node:timers/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { FollowOptions, WatchedServer, WatchedSource, WatchedState } from '../sources/watched-source.ts';
import type { StoredEntry } from '../store/rows.ts';
import { openSqlite, type SqliteStore } from '../store/sqlite/sqlite.ts';
import { named, schedulerOf } from './scheduler.fixture.ts';
import type { SyncScheduler } from './scheduler.ts';
import type { SyncEvent } from './source-loop.ts';

// Sources that are followed, over a real store and real time; the place is told by the test what it holds.

const LEASE = { source: 'cluster', owner: 'elsewhere' };
const NOTHING: WatchedState = {
  servers: [],
  kept: [],
  skipped: [],
  warnings: [],
  faults: [],
  isTried: true,
  isWhole: true,
};

const server = (name: string, claims = '', description = name): WatchedServer => ({
  name,
  json: JSON.stringify({ name, version: '1.0.0', description }),
  claims,
});

let store: SqliteStore;
let state: WatchedState;
let followers: Set<FollowOptions>;
let events: SyncEvent[];
const schedulers: SyncScheduler[] = [];

beforeEach(async () => {
  store = await openSqlite({ path: ':memory:', clock: systemClock, log: silentLog });
  const cluster = named('cluster', {
    kind: 'kubernetes',
    config: '{}',
    interval: null,
    claims: '{"owner":["ops"]}',
  });
  await store.reconcile({ sources: [cluster], registries: [] });
  state = NOTHING;
  followers = new Set();
  events = [];
});
afterEach(async () => {
  await Promise.all(schedulers.splice(0).map((scheduler) => scheduler.close()));
  expect(followers.size).toBe(0);
  await store.close();
});

const watch = (): WatchedSource => ({
  follow: async (options) => {
    followers.add(options);
    queueMicrotask(options.changed);
    return Promise.resolve({
      state: () => state,
      close: () => Promise.resolve(void followers.delete(options)),
    });
  },
});

async function start(owner = 'one', opener = watch): Promise<SyncScheduler> {
  const open = (): never => {
    throw new TypeError('it is watched');
  };
  const made = schedulerOf({
    store,
    owner,
    clock: {
      ...systemClock,
      waiting: 0,
      slept: [],
      nextIn: undefined,
      set: () => undefined,
      pass: () => undefined,
    },
    open,
    watch: opener,
    observe: (event) => events.push(event),
  });
  schedulers.push(made);
  await made.start(await store.listSources());
  return made;
}

function change(next: Partial<WatchedState>): void {
  state = { ...state, ...next };
  for (const { changed } of followers) changed();
}

/** However busy the machine is. */
const soon = (holds: () => unknown): Promise<unknown> => vi.waitFor(holds, 30_000);

const entries = async (): Promise<string[]> =>
  (await store.readEntries('cluster')).map(({ name, claims }) => `${name} ${claims}`.trim());

test('stores what a place tells, each entry with its own claims and none of the source', async () => {
  state = { ...NOTHING, servers: [server('a/a', '{"org":["acme"]}'), server('a/b')] };
  await start();
  expect(await entries()).toEqual(['a/a {"org":["acme"]}', 'a/b']);
  change({ servers: [server('a/a', '{"org":["other"]}')] });
  await soon(async () => expect(await entries()).toEqual(['a/a {"org":["other"]}']));
  expect(await store.readStatus('cluster')).toMatchObject({ phase: 'complete', counts: { server: 1 } });
});

test('keeps the store as it is while nothing is other, and tells each status once', async () => {
  state = { ...NOTHING, servers: [server('a/a')] };
  await start();
  const { revision } = await store.changesSince(0);
  const told = events.length;
  change({});
  change({ faults: ['services of all namespaces: 403'] });
  await soon(async () => {
    const message = 'services of all namespaces: 403';
    expect(await store.readStatus('cluster')).toMatchObject({
      phase: 'failed',
      message,
      counts: { server: 1 },
    });
  });
  change({ faults: ['services of all namespaces: 403'] });
  change({ faults: [] });
  await soon(async () => expect(await store.readStatus('cluster')).toMatchObject({ phase: 'complete' }));
  expect((await store.changesSince(0)).revision).toBe(revision);
  expect(events.slice(told).map(({ outcome }) => outcome)).toEqual(['error', 'success']);
});

test('leaves out what is no entry, beside what is', async () => {
  const large = {
    ...server('a/large'),
    json: JSON.stringify({ name: 'a/large', version: '1', description: 'x'.repeat(2 ** 21) }),
  };
  const skipped = [
    { name: 'a/hidden', reason: 'authz-claims is not JSON' },
    { name: 'n'.repeat(100_000), reason: 'the name has 100000 characters' },
  ];
  state = { ...NOTHING, servers: [server('a/a'), server('a b'), large], skipped };
  await start();
  expect(await entries()).toEqual(['a/a']);
  const { report } = (await store.readStatus('cluster')) ?? {};
  expect(JSON.parse(report ?? '')).toMatchObject({
    skippedTotal: 4,
    skipped: [skipped[0], { name: 'n'.repeat(512) }, { name: 'a b' }, { name: 'a/large' }],
  });
});

test('starts from what the store holds, and leaves it where parts cannot be read', async () => {
  state = { ...NOTHING, servers: [server('a/a', '{"org":["acme"]}')] };
  await (await start()).close();
  let before: readonly StoredEntry[] = [];
  state = { ...NOTHING, faults: ['nothing answers'], isWhole: false };
  const keeping = (): WatchedSource => ({
    follow: async (options) => {
      ({ before } = options);
      state = { ...state, kept: before };
      return watch().follow(options);
    },
  });
  await start('two', keeping);
  await soon(async () => expect(await store.readStatus('cluster')).toMatchObject({ phase: 'failed' }));
  expect(before.map(({ name }) => name)).toEqual(['a/a']);
  expect(await entries()).toEqual(['a/a {"org":["acme"]}']);
});

test('lets a start wait until the place was asked, so that nobody reads by the claims of before', async () => {
  state = { ...NOTHING, servers: [server('a/a', '{"org":["acme"]}')] };
  await (await start()).close();
  state = { ...NOTHING, servers: [server('a/a', '{"org":["other"]}')] };
  const slow = (): WatchedSource => ({
    follow: async (options) => {
      await setImmediate();
      return watch().follow(options);
    },
  });
  await start('two', slow);
  expect(await entries()).toEqual(['a/a {"org":["other"]}']);
});

test('says in the status why it cannot follow at all', async () => {
  const message = 'SKEP_REGISTRY_WATCH_NAMESPACE names "one two", which is no namespace';
  await start('one', () => {
    throw new SkepError('config/invalid', { message });
  });
  expect(await store.readStatus('cluster')).toMatchObject({ phase: 'failed', message });
});

test('leaves a place to the one replica that holds its lease, and takes over when that gives it up', async () => {
  await store.acquireLease(LEASE, 60_000);
  const data = { servers: [server('a/a')] };
  state = { ...NOTHING, ...data };
  const asked = vi.spyOn(store, 'acquireLease');
  const starting = start();
  // The second time it has thought about the answer to the first.
  await soon(() => expect(asked).toHaveBeenCalledTimes(2));
  expect(followers.size).toBe(0);
  await store.releaseLease(LEASE);
  await starting;
  expect(await entries()).toEqual(['a/a']);
});

test('writes nothing any more when another replica has taken its lease', async () => {
  state = { ...NOTHING, servers: [server('a/a')] };
  await start();
  await store.releaseLease({ source: 'cluster', owner: 'one' });
  await store.acquireLease(LEASE, 60_000);
  change({ servers: [server('a/b')] });
  await soon(() => expect(followers.size).toBe(0));
  expect(await entries()).toEqual(['a/a']);
});
