import { SkepError } from '@skep/core/errors/skep-error.ts';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { LEASE_MS, withLease } from './lease.ts';
import { type ManualClock, manualClock } from '@skep/core/time/doubles/manual-clock.ts';

const LEASE = { source: 'one', owner: 'a' };

/** What a renewal ends with. */
type Renewal = boolean | 'fails';

let clock: ManualClock;
let renewals: Renewal[];
let released: number;
beforeEach(() => {
  clock = manualClock();
  renewals = [];
  released = 0;
});

const store = {
  acquireLease: () => Promise.resolve(true),
  renewLease: () => {
    const next = renewals.shift() ?? true;
    return next === 'fails' ? Promise.reject(new SkepError('store/unavailable')) : Promise.resolve(next);
  },
  releaseLease: () => {
    released += 1;
    return Promise.resolve();
  },
};

/** Works until it is told to stop; resolves to the code of the reason. */
function work(): Promise<unknown> {
  const { signal } = new AbortController();
  return withLease(
    LEASE,
    { store, clock, signal },
    (lost) =>
      new Promise((resolve) => {
        lost.addEventListener('abort', () => resolve(lost.reason.code));
      }),
  );
}

/** Lets so many heartbeats pass. */
async function beats(count: number): Promise<void> {
  for (let beat = 0; beat < count; beat += 1) {
    await vi.waitFor(() => expect(clock.nextIn).toBeGreaterThan(0), { interval: 1 });
    clock.pass(clock.nextIn ?? 0);
  }
}

describe('withLease', () => {
  test('goes on for longer than the lease, also when a renewal fails now and then', async () => {
    let reason: unknown;
    void work().then((ended) => (reason = ended));
    renewals = [true, 'fails', 'fails', true, true, 'fails', true];
    await beats(renewals.length);
    await vi.waitFor(() => expect(clock.nextIn).toBeGreaterThan(0), { interval: 1 });
    expect([reason, released]).toEqual([undefined, 0]);
    expect(clock.now() - Date.parse('2026-01-01T00:00:00Z')).toBeGreaterThan(2 * LEASE_MS);
  });

  test('stops when somebody else has the lease', async () => {
    const working = work();
    renewals = [true, false];
    await beats(2);
    expect(await working).toBe('store/lease-lost');
    expect(released).toBe(1);
  });

  test('stops when the lease may have run out, because the store has not answered', async () => {
    const working = work();
    renewals = ['fails', 'fails', 'fails', 'fails'];
    await beats(4);
    expect(await working).toBe('store/lease-lost');
    expect(clock.now() - Date.parse('2026-01-01T00:00:00Z')).toBe(LEASE_MS);
  });
});
