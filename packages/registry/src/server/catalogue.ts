import { isDeepStrictEqual } from 'node:util';
import type { Log } from '@skep/core/log/log.ts';
import { utcTime } from '@skep/core/time/clock.ts';
import type { RegistryConfig } from '../config/load.ts';
import { StoreFollower } from '../engine/follow-store.ts';
import type { ReadEngine } from '../engine/read-engine.ts';
import { openSource } from '../sources/open-source.ts';
import { GivenSources, storable } from '../sources/given-sources.ts';
import type { Revision } from '../store/changes.ts';
import type { ReconcileReport } from '../store/desired-state.ts';
import type { StoredSource } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { AppOptions } from './app-options.ts';
import type { Operations } from './operations.ts';
import { Reconciler } from '../sync/reconciler.ts';
import { SyncScheduler, type SyncControl } from '../sync/scheduler.ts';

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
export interface Catalogue {
  readonly sync: SyncControl;
  /** Resolves when every read of this process sees the commit of that revision. */
  applied(revision: Revision): Promise<void>;
  /** Takes over sources, registries and limits of a new configuration; fails as `Store.reconcile` does, changing nothing. */
  reconcile(config: CatalogueOptions['config']): Promise<void>;
  /** Stops synchronising and following. Idempotent. */
  close(): Promise<void>;
}

/**
 * Brings the store in line with the configuration (docs/behaviour/registry.md#reconciliation), loads what it holds into
 * the engine, and looks at every source. Fails as `Store.reconcile` and `SyncScheduler.start` do; nothing goes on
 * running then.
 */
export async function openCatalogue(options: CatalogueOptions): Promise<Catalogue> {
  const { config, store, engine, ingest, clock, random, log, operations, build, env, tempDir } = options;
  const userAgent = `skep-registry/${build.version}`;
  const given = new GivenSources(config.sources);
  let { limits } = config;
  let served: readonly StoredSource[] = [];
  const onSources = (sources: readonly StoredSource[]): void => {
    served = sources;
    scheduler.update(sources);
  };
  const follower = new StoreFollower({ store, engine, log, onSources });
  const scheduler = new SyncScheduler({
    parts: {
      store,
      ingest,
      limits: () => limits,
      now: () => utcTime(clock),
      apply: (revision) => follower.reach(revision),
    },
    open: (one, before) => openSource(given.of(one), { env, tempDir, userAgent, clock, limits, before }),
    clock,
    random,
    log,
    owner: options.randomId(),
    observe: (event) => operations.synced(event),
  });
  const reconciler = new Reconciler({
    store,
    clock,
    log,
    replica: options.randomId(),
    reconciled: (changes) => {
      operations.reconciled(changes);
      logReconciled(log, changes);
    },
  });
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
    applied: (revision) => follower.reach(revision),
    reconcile: async ({ sources, registries, limits: next }) => {
      const isOther = given.replace(sources);
      const revision = await reconciler.reconcile(storable({ sources, registries })).catch(given.orBack());
      const isNew = isOther || !isDeepStrictEqual(limits, next);
      limits = next;
      await follower.reach(revision);
      if (!isNew) return;
      // A source that is open keeps the limits and the address that it was opened with.
      scheduler.update([]);
      scheduler.update(served);
    },
    close,
  };
}

function logReconciled(log: Log, { sources, registries, blocked }: ReconcileReport): void {
  log.info({ sources, registries }, 'configuration reconciled with the store');
  for (const { source, registries: keepers } of blocked) {
    log.warn(
      { source, registries: keepers },
      'source is no longer in the configuration; it stays, without synchronisation, for the registries that list it',
    );
  }
}

async function startUnlessStopped(
  scheduler: SyncScheduler,
  sources: readonly StoredSource[],
  stop: AbortSignal,
): Promise<void> {
  stop.throwIfAborted();
  const end = (): void => void scheduler.close();
  stop.addEventListener('abort', end, { once: true });
  try {
    await scheduler.start(sources);
  } finally {
    stop.removeEventListener('abort', end);
  }
  stop.throwIfAborted();
}
