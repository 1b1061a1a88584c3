import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Store } from '../store/store.ts';
import type { Lease } from '../store/writes/leases.ts';
import type { Clock } from '@skep/core/time/clock.ts';

/** Milliseconds until others may take over from a process that died. Longer than a disk or a database may hang. */
export const LEASE_MS = 10_000;
/** How often a lease is renewed: it survives some renewals that fail. */
const BEAT_MS = 3_000;

export interface LeaseOptions {
  readonly store: Pick<Store, 'acquireLease' | 'renewLease' | 'releaseLease'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Does the work while this process alone holds the lease, or answers `'held-elsewhere'` at once. The lease is renewed
 * for as long as the work goes on, so it can be short however long that is; when it is lost, or could not be renewed until
 * it ran out, the work's signal aborts with `store/lease-lost`. It is given up however the work ends.
 */
export async function withLease<T>(
  lease: Lease,
  { store, clock, signal }: LeaseOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | 'held-elsewhere'> {
  const { now } = clock;
  let end = now() + LEASE_MS;
  if (!(await store.acquireLease(lease, LEASE_MS))) return 'held-elsewhere';
  const lost = new AbortController();
  let cancel = (): void => undefined;
  let beat: Promise<void> = Promise.resolve();
  const heartbeat = (): void => {
    cancel = clock.after(Math.min(BEAT_MS, end - now()), () => {
      beat = renew().then((isHeld) => {
        if (isHeld) heartbeat();
        else lost.abort(new SkepError('store/lease-lost'));
      });
    }).cancel;
  };
  const renew = async (): Promise<boolean> => {
    const asked = now();
    try {
      if (!(await store.renewLease(lease, LEASE_MS))) return false;
      end = asked + LEASE_MS;
      return true;
    } catch {
      // A store that does not answer cannot give the lease to anybody before it has run out.
      return now() < end;
    }
  };
  heartbeat();
  try {
    return await work(AbortSignal.any([signal, lost.signal]));
  } finally {
    await beat;
    cancel();
    await store.releaseLease(lease);
  }
}
