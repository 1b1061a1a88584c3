import type { Log } from '@skep/core/log/log.ts';
import type { Committed, Revision } from '../store/changes.ts';
import { ALIVE_MS } from '../store/writes/config-generation.ts';
import type { DesiredState, ReconcileReport } from '../store/desired-state.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '@skep/core/time/clock.ts';

const BEAT_MS = ALIVE_MS / 4;
/** How soon to try again where a newer configuration was in force. */
const TRY_AGAIN_MS = 5_000;

export interface ReconcilerOptions {
  readonly store: Pick<Store, 'reconcile' | 'renewReplica' | 'removeReplica'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Unique to this process. */
  readonly replica: string;
  /** Hears of every reconciliation that came into force. */
  readonly reconciled: (report: ReconcileReport) => void;
}

/**
 * Brings the store in line with the configuration of this process, and says there that the process runs with it
 * (docs/behaviour/registry.md#replicas). While another process runs with a newer one it stands back, and tries again
 * until that is gone.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  #desired: DesiredState | undefined;
  #inForce = false;
  /** One at a time: an older try must not come after a newer one. */
  #turn: Promise<unknown> = Promise.resolve();
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** Takes a configuration over. Fails as `Store.reconcile` does; the one before then stays. */
  async reconcile(desired: DesiredState): Promise<Revision> {
    const { revision, value } = await this.#inTurn(() => this.#try(desired));
    if (!value.inForce) {
      this.#options.log.warn(
        {},
        'another replica runs with a newer configuration, which stays in force until no replica has it any more',
      );
    }
    return revision;
  }

  /** Others need not stand back for this process from now on. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancel();
    const { store, replica } = this.#options;
    await this.#inTurn(() => this.#logged(() => store.removeReplica(replica)));
  }

  async #try(desired: DesiredState): Promise<Committed<ReconcileReport>> {
    const { store, replica, reconciled } = this.#options;
    const done = await store.reconcile(desired, replica);
    this.#desired = desired;
    this.#inForce = done.value.inForce;
    if (this.#inForce) reconciled(done.value);
    this.#later();
    return done;
  }

  #later(): void {
    this.#cancel();
    if (this.#isClosed) return;
    const wait = this.#inForce ? BEAT_MS : TRY_AGAIN_MS;
    this.#cancel = this.#options.clock.after(wait, () => void this.#inTurn(() => this.#beat())).cancel;
  }

  async #beat(): Promise<void> {
    if (this.#isClosed || this.#desired === undefined) return;
    const { store, replica } = this.#options;
    const desired = this.#desired;
    await this.#logged(async () => {
      if (this.#inForce) await store.renewReplica(replica);
      else await this.#try(desired);
    });
    this.#later();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done;
    return done;
  }

  /** The store is asked again at the next beat; one that was missed does no harm. */
  async #logged(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.log.warn(
        { err: error },
        'cannot tell the store which configuration this process runs with',
      );
    }
  }
}
