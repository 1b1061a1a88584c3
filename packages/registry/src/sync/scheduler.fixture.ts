import { silentLog } from '@skep/core/log/log.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { WatchedSource } from '../sources/watched-source.ts';
import type { Source } from '../sources/source.ts';
import type { NamedSource, StoredSource } from '../store/rows.ts';
import type { SqliteStore } from '../store/sqlite/sqlite.ts';
import { DEFAULT_LIMITS } from '../shape/limits.ts';
import { ingest } from './ingest.ts';
import { SyncScheduler } from './scheduler.ts';
import type { SyncEvent } from './source-loop.ts';
import type { ManualClock } from '@skep/core/time/doubles/manual-clock.ts';

// Schedulers over a store in memory and a clock that a test moves, for the tests of this folder.

export interface SchedulerFixture {
  readonly store: SqliteStore;
  readonly clock: ManualClock;
  readonly owner: string;
  readonly open: (source: StoredSource) => Source;
  readonly watch?: (source: StoredSource) => WatchedSource;
  readonly observe?: (event: SyncEvent) => void;
}

export function schedulerOf({ store, observe, watch, ...fixture }: SchedulerFixture): SyncScheduler {
  return new SyncScheduler({
    ...fixture,
    store,
    ingest: async (input) => Promise.resolve(ingest(input)),
    apply: async () => Promise.resolve(),
    limits: () => ({ ...DEFAULT_LIMITS, maxCatalogueSize: 100_000 }),
    random: () => 0.5,
    log: silentLog,
    observe: observe ?? (() => undefined),
    watch: watch ?? (() => ({ follow: async () => Promise.reject(new SkepError('internal/bug')) })),
  });
}

/** A catalogue of one version of each. */
export const catalogue = (...names: readonly string[]): string =>
  JSON.stringify(names.map((name) => ({ name, version: '1.0.0', description: name })));

/** A git source that is looked at every ten minutes. */
export const named = (name: string, change: Partial<NamedSource> = {}): NamedSource => ({
  name,
  kind: 'git',
  config: '{"repository":"https://git.example/c.git"}',
  format: null,
  filter: null,
  interval: 600_000,
  claims: '',
  ...change,
});
