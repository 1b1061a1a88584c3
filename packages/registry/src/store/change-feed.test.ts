import { setImmediate } from 'node:timers/promises';
import { silentLog, type Log } from '@skep/core/log/log.ts';
import { describe, expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { ChangeFeed } from './change-feed.ts';

function opened(log: Log = silentLog) {
  const clock = manualClock();
  const state = { revision: 5, failing: false };
  const feed = new ChangeFeed({
    clock,
    log,
    checkEvery: 4000,
    readRevision: async () => {
      if (state.failing) throw new Error('away');
      return state.revision;
    },
  });
  return { clock, feed, state };
}

describe('ChangeFeed', () => {
  test('finds a commit that no notice told of, at the next look', async () => {
    const { clock, feed, state } = opened();
    const heard: number[] = [];
    feed.subscribe((revision) => heard.push(revision));
    await feed.check();
    expect(heard).toEqual([5]);
    state.revision = 7;
    expect([clock.waiting, clock.nextIn]).toEqual([1, 4000]);
    clock.pass(4000);
    await feed.check();
    expect(heard).toEqual([5, 7]);
  });

  test('lets who listens prepare while the commit is under way, and not when it is over', async () => {
    const { feed } = opened();
    const written = { source: 'internal', changed: [], entries: [] };
    const heard: unknown[] = [];
    feed.subscribe(
      () => undefined,
      (prepared) => heard.push(prepared),
    );
    feed.hold(written)();
    await setImmediate();
    expect(heard).toEqual([]);
    const release = feed.hold(written);
    await setImmediate();
    expect(heard).toEqual([written]);
    expect(heard[0]).toBe(written);
    release();
  });

  test('says since when commits of this process have been under way', () => {
    const { clock, feed } = opened();
    expect(feed.heldSince).toBeUndefined();
    clock.set(1_000_000);
    const began = clock.elapsed();
    const first = feed.hold();
    clock.pass(2);
    const second = feed.hold();
    first();
    first();
    expect(feed.heldSince).toBe(began);
    second();
    expect(feed.heldSince).toBeUndefined();
    clock.pass(1);
    feed.hold();
    expect(feed.heldSince).toBe(began + 3);
  });

  test('goes on, and logs it, when who listens cannot prepare', async () => {
    const warned: unknown[] = [];
    const { feed } = opened({ ...silentLog, warn: (facts: unknown) => void warned.push(facts) });
    const heard: number[] = [];
    feed.subscribe(
      (revision) => heard.push(revision),
      () => {
        throw new Error('too deep');
      },
    );
    const release = feed.hold({ source: 'internal', changed: [], entries: [] });
    await setImmediate();
    release();
    feed.told(9);
    expect(heard).toContain(9);
    expect(warned).toEqual([{ err: new Error('too deep') }]);
  });

  test('tells a revision once, never an older one after a newer one', async () => {
    const { feed } = opened();
    const heard: number[] = [];
    feed.subscribe((revision) => heard.push(revision));
    await feed.check();
    for (const revision of [6, 6, 5, 8, 7, Number.NaN]) feed.told(revision);
    expect(heard).toEqual([5, 6, 8]);
  });

  test('tells a listener that comes later what the others know', async () => {
    const { feed } = opened();
    feed.subscribe(() => {});
    await feed.check();
    const heard: number[] = [];
    feed.subscribe((revision) => heard.push(revision));
    await feed.check();
    expect(heard).toEqual([5]);
  });

  test('looks on while the store is away, and complains once', async () => {
    const complaints: string[] = [];
    const { clock, feed, state } = opened({
      ...silentLog,
      warn: (_, message) => void complaints.push(message),
    });
    const heard: number[] = [];
    feed.subscribe((revision) => heard.push(revision));
    await feed.check();
    Object.assign(state, { failing: true, revision: 9 });
    for (let turn = 0; turn < 3; turn++) {
      clock.pass(4000);
      await feed.check();
    }
    expect(complaints).toEqual(['cannot see whether the store has changed; trying again']);
    state.failing = false;
    clock.pass(4000);
    await feed.check();
    expect(heard).toEqual([5, 9]);
  });

  test('leaves no timer behind when the last listener has ended', async () => {
    const { clock, feed } = opened();
    const ends = [feed.subscribe(() => {}), feed.subscribe(() => {})];
    await feed.check();
    for (const end of ends) end();
    expect(clock.waiting).toBe(0);
    feed.subscribe(() => {});
    await feed.check();
    feed.close();
    expect(clock.waiting).toBe(0);
  });
});
