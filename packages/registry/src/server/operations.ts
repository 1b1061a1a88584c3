import type { Log } from '@skep/core/log/log.ts';
import type { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import { NO_TELEMETRY, type Telemetry } from '@skep/core/telemetry/telemetry.ts';
import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import type { RequestObserver } from '../api/http/observe-requests.ts';
import { AuditSwitch, type PreparedAudit } from '../audit/audit-switch.ts';
import { openAudit } from '../audit/open-audit.ts';
import { reconcileEvent, reloadEvent, syncEvent } from '../audit/system-events.ts';
import type { BuildInfo } from '../config/build-info.ts';
import type { AuditConfig } from '../config/audit.ts';
import type { TelemetryConfig } from '../config/telemetry.ts';
import type { Snapshot } from '../engine/snapshot.ts';
import type { PoolState } from '../store/postgres/postgres.ts';
import type { ConfigDifference } from '../config/config-difference.ts';
import type { ReconcileReport } from '../store/desired-state.ts';
import type { SyncEvent } from '../sync/source-loop.ts';
import { countFiltered } from '../telemetry/filtered-entries.ts';
import {
  measurePool,
  type RegistryMetrics,
  registryMetrics,
  type SourceGauge,
} from '../telemetry/registry-metrics.ts';
import { measureRequests, limitedScrapes } from '../telemetry/http-metrics.ts';
import { syncMeasurement, syncSpan } from '../telemetry/sync-telemetry.ts';
import { traceRequests } from '../telemetry/trace-requests.ts';

export interface OperationsConfig {
  readonly audit: AuditConfig;
  readonly telemetry: TelemetryConfig;
}

export interface OperationsServices {
  readonly log: Log;
  readonly active: ActiveSpan;
  readonly stdout: { write(text: string): unknown };
  /** RFC 3339 UTC. */
  readonly now: () => string;
  readonly randomId: () => string;
  readonly build: BuildInfo;
  /** Whether requests are watched anyway, so that an audit log may be switched on later. */
  readonly watched: boolean;
  /** Read at every scrape. */
  readonly sources: () => readonly SourceGauge[];
  readonly snapshot: () => Snapshot;
  /** Where the store has one. */
  readonly pool: (() => PoolState) | undefined;
}

/** What watches a running registry: audit log, metrics and traces, each only where it is configured. */
export interface Operations {
  /** For every listener that serves callers. */
  readonly observers: readonly RequestObserver[];
  /** Whether requests can be audited; what is not watched from the start cannot be later. */
  readonly auditable: boolean;
  readonly tracing: Tracing | undefined;
  readonly metrics: RegistryMetrics | undefined;
  /** All metrics as text; absent where none are kept. */
  readonly scrape: (() => Promise<string>) | undefined;
  /** A synchronisation has ended. */
  synced(event: SyncEvent): void;
  /** A start or a reload has changed the store to match the configuration. */
  reconciled(report: ReconcileReport): void;
  /** A new configuration was taken over. */
  reloaded(difference: ConfigDifference, restart: readonly string[]): void;
  /** Opens the audit file anew, after it was rotated. */
  reopenAudit(): Promise<void>;
  /** Opens the audit log of a new configuration beside the one in use. Fails with `audit/unwritable`. */
  prepareAudit(config: AuditConfig): Promise<PreparedAudit>;
  /** Sends and writes what is left. Idempotent. */
  close(): Promise<void>;
}

/** Fails with `audit/unwritable`. */
export async function openOperations(
  config: OperationsConfig,
  services: OperationsServices,
): Promise<Operations> {
  const telemetry = await telemetryFor(config.telemetry, services);
  const metrics = metricsFor(telemetry, services);
  try {
    const audit = new AuditSwitch((settings) =>
      openAudit(settings, { ...services, onLost: (events) => metrics?.auditLost(events) }),
    );
    await (await audit.prepare(config.audit)).use();
    const auditable = services.watched || config.audit !== 'off';
    return {
      observers: [...observersFor(telemetry, services), ...(auditable ? [audit.observer] : [])],
      auditable,
      tracing: telemetry.tracing,
      metrics,
      scrape: telemetry.scrape === undefined ? undefined : limitedScrapes(telemetry.scrape),
      synced: (event) => {
        metrics?.syncFinished(syncMeasurement(event));
        audit.record(syncEvent(event));
        telemetry.tracing?.record(syncSpan(event), event.duration, event.outcome);
      },
      reconciled: (report) => audit.record(reconcileEvent(report)),
      reloaded: (...what) => audit.record(reloadEvent(...what)),
      reopenAudit: () => audit.reopen(),
      prepareAudit: (next) => audit.prepare(next),
      close: async () => {
        await telemetry.close();
        await audit.close();
      },
    };
  } catch (error) {
    await telemetry.close();
    throw error;
  }
}

async function telemetryFor(config: TelemetryConfig, services: OperationsServices): Promise<Telemetry> {
  if (config === 'off') return NO_TELEMETRY;
  if (config.tracing === 'off' && config.metrics === 'off') {
    services.log.warn({}, 'telemetry is enabled, but neither tracing nor metrics are');
    return NO_TELEMETRY;
  }
  const { openTelemetry } = await import('@skep/core/telemetry/open-telemetry.ts');
  return openTelemetry(
    { ...config, serviceVersion: config.serviceVersion ?? services.build.version },
    services,
  );
}

function metricsFor({ meter }: Telemetry, { sources, now, build, pool }: OperationsServices) {
  if (meter === undefined) return undefined;
  if (pool !== undefined) measurePool(meter, pool);
  return registryMetrics(meter, { sources, build, now: () => Date.parse(now()) });
}

/** Traces first: whoever comes later finds the request's span. */
function observersFor({ tracing, meter }: Telemetry, { snapshot }: OperationsServices): RequestObserver[] {
  return [
    ...(tracing === undefined ? [] : [traceRequests(tracing)]),
    ...(meter === undefined ? [] : [measureRequests(meter), countFiltered(meter, snapshot)]),
  ];
}
