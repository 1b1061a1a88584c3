import type { SpanOptions } from '@skep/core/telemetry/tracing.ts';
import type { SyncEvent } from '../sync/source-loop.ts';
import type { SyncMeasurement } from './registry-metrics.ts';

/** A synchronisation that has ended, for metrics. */
export function syncMeasurement({ source, duration, outcome, failure }: SyncEvent): SyncMeasurement {
  return {
    source,
    outcome,
    seconds: duration / 1000,
    ...(failure === undefined ? {} : { errorType: failure }),
  };
}

/** The same as a span (docs/behaviour/registry.md#traces). */
export function syncSpan({ source, kind, duration, outcome, failure, status }: SyncEvent): SpanOptions {
  const { server, skill, plugin } = status.counts;
  return {
    name: 'sync.performRegistrySync',
    attributes: {
      'registry.name': source,
      'registry.type': kind,
      'sync.duration_seconds': duration / 1000,
      'sync.success': outcome === 'success',
      'sync.servers': server,
      'sync.skills': skill,
      'sync.plugins': plugin,
      ...(failure === undefined ? {} : { 'error.type': failure }),
    },
  };
}
