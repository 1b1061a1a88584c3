import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Lease, SyncStore } from '../store/store.ts';
import type { Clock } from './clock.ts';

export interface LeaseOptions {
  readonly store: Pick<SyncStore, 'acquireLease' | 'renewLease' | 'releaseLease'>;
  readonly clock: Clock;
  /** Milliseconds until others may take over from a process that died. */
  readonly milliseconds: number;
  readonly signal: AbortSignal;
}

/**
 * Does the work while this process alone holds the lease, or answers `'held-elsewhere'` at once. The lease is renewed
 * while the work goes on; when that fails the work's signal aborts with `store/lease-lost`. It is given up however the
 * work ends.
 */
export async function withLease<T>(
  lease: Lease,
  { store, clock, milliseconds, signal }: LeaseOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | 'held-elsewhere'> {
  if (!(await store.acquireLease(lease, milliseconds))) return 'held-elsewhere';
  const lost = new AbortController();
  let cancel = (): void => undefined;
  let beat: Promise<void> = Promise.resolve();
  const heartbeat = (): void => {
    cancel = clock.after(milliseconds / 3, () => {
      beat = renew().then((isHeld) => {
        if (isHeld) heartbeat();
        else lost.abort(new SkepError('store/lease-lost'));
      });
    });
  };
  // A store that does not answer may have given the lease to somebody else by now.
  const renew = (): Promise<boolean> => store.renewLease(lease, milliseconds).catch(() => false);
  heartbeat();
  try {
    return await work(AbortSignal.any([signal, lost.signal]));
  } finally {
    await beat;
    cancel();
    await store.releaseLease(lease);
  }
}
