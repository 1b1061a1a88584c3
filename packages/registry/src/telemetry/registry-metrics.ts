import type { Meter } from '@opentelemetry/api';
import type { BuildInfo } from '../config/build-info.ts';
import type { EntryKind } from '../store/rows.ts';
import { AUDIT_COMPONENT } from '../config/audit-events.ts';
import type { ReadEngine } from '../engine/read-engine.ts';
import type { SyncEvent } from '../sync/source-loop.ts';
import type { PoolState } from '../store/postgres/postgres.ts';

/** A source at the moment of a scrape. */
export interface SourceGauge {
  readonly source: string;
  /** Distinct names, not versions. */
  readonly entries: Readonly<Record<EntryKind, number>>;
}

/** What is counted besides requests. */
export interface RegistryMetrics {
  readonly syncFinished: (sync: Pick<SyncEvent, 'source' | 'duration' | 'outcome' | 'failure'>) => void;
  readonly auditLost: (events: number) => void;
}

export interface Observed {
  readonly sources: () => readonly SourceGauge[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly build: BuildInfo;
}

const SYNC_SECONDS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/**
 * Metrics (docs/behaviour/registry.md#metrics) that no request makes. Gauges are read when they are asked for. Those of
 * a source that is gone stay at 0, because the SDK goes on reporting the last value of whatever was observed once.
 */
export function registryMetrics(meter: Meter, observed: Observed): RegistryMetrics {
  const durations = meter.createHistogram('skep.registry.sync.duration', {
    unit: 's',
    description: 'Duration of synchronisations',
    advice: { explicitBucketBoundaries: SYNC_SECONDS },
  });
  const errors = meter.createCounter('skep.registry.errors', { description: 'Failures in the background' });
  const lost = meter.createCounter('skep.registry.audit.lost', {
    description: 'Audit events that could not be written',
  });
  const lastSuccess = new Map<string, number>();
  addGauges(meter, observed);
  addAgeGauge(meter, lastSuccess, observed);
  return {
    syncFinished: ({ source, duration, outcome, failure }) => {
      durations.record(duration / 1000, { source, outcome });
      if (outcome === 'success') lastSuccess.set(source, observed.now());
      if (failure !== undefined) errors.add(1, { error_type: failure, area: 'sync' });
    },
    auditLost: (events) => lost.add(events),
  };
}

const GAUGES: Readonly<Record<EntryKind, string>> = {
  server: 'skep.registry.servers',
  skill: 'skep.registry.skills',
  plugin: 'skep.registry.plugins',
};

function addGauges(meter: Meter, { sources, build }: Observed): void {
  for (const kind of ['server', 'skill', 'plugin'] as const) {
    const known = new Set<string>();
    meter
      .createObservableGauge(GAUGES[kind], { description: `Names of ${kind}s in a source` })
      .addCallback((result) => {
        for (const source of known) result.observe(0, { source });
        for (const { source, entries } of sources()) {
          result.observe(entries[kind], { source });
          known.add(source);
        }
      });
  }
  meter
    .createObservableGauge('skep.registry.build_info', { description: 'Always 1; the labels say what runs' })
    .addCallback((result) =>
      result.observe(1, { version: build.version, commit: build.commit, component: AUDIT_COMPONENT }),
    );
}

function addAgeGauge(
  meter: Meter,
  lastSuccess: ReadonlyMap<string, number>,
  { sources, now }: Observed,
): void {
  meter
    .createObservableGauge('skep.registry.sync.age', {
      unit: 's',
      description: 'Time since this process last synchronised a source',
    })
    .addCallback((result) => {
      const served = new Set(sources().map(({ source }) => source));
      for (const [source, time] of lastSuccess) {
        result.observe(served.has(source) ? (now() - time) / 1000 : 0, { source });
      }
    });
}

/** How many names of each kind every source serves now: counts of what lies in memory, so a scrape costs no query. */
export function sourceGauges(engine: ReadEngine): SourceGauge[] {
  return [...engine.blocks().values()].map(({ source, entries: { server, skill, plugin } }) => ({
    source,
    entries: { server: server.length, skill: skill.length, plugin: plugin.length },
  }));
}

/** Connections to the database, named as the OpenTelemetry conventions for database clients say. */
export function measurePool(meter: Meter, pool: () => PoolState): void {
  const name = { 'db.client.connection.pool.name': 'registry' };
  meter
    .createObservableGauge('db.client.connection.count', { description: 'Connections by what they do' })
    .addCallback((result) => {
      const { idle, total } = pool();
      result.observe(idle, { ...name, 'db.client.connection.state': 'idle' });
      result.observe(total - idle, { ...name, 'db.client.connection.state': 'used' });
    });
  meter
    .createObservableGauge('db.client.connection.max', { description: 'Most connections there may be' })
    .addCallback((result) => result.observe(pool().max, name));
  meter
    .createObservableGauge('db.client.connection.pending_requests', {
      description: 'Work that waits for a connection',
    })
    .addCallback((result) => result.observe(pool().waiting, name));
}
