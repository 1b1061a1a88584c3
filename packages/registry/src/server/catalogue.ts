import { addAbortListener } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { RegistryConfig } from '../config/load.ts';
import { StoreFollower } from '../engine/follow-store.ts';
import type { ReadEngine } from '../engine/read-engine.ts';
import { openSource, openWatched } from '../sources/open-source.ts';
import { asGiven, secretsOf, storable } from '../sources/url-secrets.ts';
import type { Revision } from '../store/changes.ts';
import type { ReconcileReport } from '../store/desired-state.ts';
import type { StoredSource } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { AppOptions } from './app-options.ts';
import type { Operations } from './operations.ts';
import { Reconciler } from '../sync/reconciler.ts';
import { SyncScheduler } from '../sync/scheduler.ts';

export interface CatalogueOptions extends Pick<
  AppOptions,
  'ingest' | 'clock' | 'random' | 'randomId' | 'log' | 'build' | 'env' | 'tempDir' | 'stop'
> {
  readonly config: Pick<RegistryConfig, 'sources' | 'registries' | 'limits'>;
  readonly store: Store;
  readonly engine: ReadEngine;
  /** Hear of every synchronisation that ended, and what a start or a reload changed in the store. */
  readonly operations: Pick<Operations, 'synced' | 'reconciled'>;
}

/** What is served, kept in step with the configuration, the store, and the places that entries come from. */
export type Catalogue = Awaited<ReturnType<typeof openCatalogue>>;

/**
 * Brings the store in line with the configuration (docs/behaviour/registry.md#reconciliation), loads what it holds into
 * the engine, and looks at every source. Fails as `Store.reconcile` and `SyncScheduler.start` do; nothing goes on
 * running then.
 */
export async function openCatalogue(options: CatalogueOptions) {
  const { config, store, engine, ingest, clock, random, log, operations, build, env, tempDir } = options;
  const userAgent = `skep-registry/${build.version}`;
  let { sources: given, limits } = config;
  let served: readonly StoredSource[] = [];
  const onSources = (sources: readonly StoredSource[]): void => {
    served = sources;
    scheduler.update(sources);
  };
  const follower = new StoreFollower({ store, engine, log, onSources });
  const scheduler = new SyncScheduler({
    store,
    ingest,
    limits: () => limits,
    apply: (revision) => follower.reach(revision),
    open: (one, before) =>
      openSource(asGiven(one, given), { env, tempDir, userAgent, clock, limits, before }),
    watch: (one) => openWatched(asGiven(one, given), { env, userAgent, clock, random, limits }),
    clock,
    random,
    log,
    owner: options.randomId(),
    observe: (event) => operations.synced(event),
  });
  const reconciled = (report: ReconcileReport): void => operations.reconciled(report);
  const reconciler = new Reconciler({ store, clock, log, replica: options.randomId(), reconciled });
  const close = async (): Promise<void> => {
    await reconciler.close();
    await scheduler.close();
    await follower.close();
  };
  try {
    await reconciler.reconcile(storable(config));
    served = await follower.start();
    await startUnlessStopped(scheduler, served, options.stop);
    // Another replica may have loaded what this one has waited for.
    await follower.catchUp();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    sync: scheduler,
    /** Resolves when every read of this process sees the commit of that revision. */
    applied: (revision: Revision): Promise<void> => follower.reach(revision),
    /** Takes over sources, registries and limits of a new configuration; fails as `Store.reconcile` does, changing nothing. */
    reconcile: async (next: CatalogueOptions['config']): Promise<void> => {
      const before = given;
      // Before the store does: a source may be opened as soon as that has it.
      given = next.sources;
      const revision = await reconciler.reconcile(storable(next)).catch((reason: unknown) => {
        given = before;
        throw reason;
      });
      const isNew = !isDeepStrictEqual([secretsOf(before), limits], [secretsOf(next.sources), next.limits]);
      limits = next.limits;
      await follower.reach(revision);
      if (!isNew) return;
      // A source that is open keeps the limits and the address that it was opened with.
      scheduler.update([]);
      scheduler.update(served);
    },
    /** Stops synchronising and following. Idempotent. */
    close,
  };
}

async function startUnlessStopped(
  scheduler: SyncScheduler,
  sources: readonly StoredSource[],
  stop: AbortSignal,
): Promise<void> {
  stop.throwIfAborted();
  using _ = addAbortListener(stop, () => void scheduler.close());
  await scheduler.start(sources);
  stop.throwIfAborted();
}
