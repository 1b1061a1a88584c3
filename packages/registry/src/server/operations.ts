import type { Log } from '@skep/core/log/log.ts';
import { NO_TELEMETRY, type Telemetry } from '@skep/core/telemetry/telemetry.ts';
import { utcTime } from '@skep/core/time/clock.ts';
import type { RequestObserver } from '../api/http/observe-requests.ts';
import { AuditSwitch, openAudit, type PreparedAudit } from '../audit/audit-switch.ts';
import { reconcileEvent, reloadEvent, syncEvent } from '../audit/system-events.ts';
import type { AuditConfig } from '../config/audit.ts';
import type { ConfigDifference } from '../config/config-difference.ts';
import type { ReadEngine } from '../engine/read-engine.ts';
import type { ReconcileReport } from '../store/desired-state.ts';
import type { OpenedStore } from '../store/open-store.ts';
import type { SyncEvent } from '../sync/source-loop.ts';
import { countFiltered } from '../telemetry/filtered-entries.ts';
import { limitedScrapes, measureRequests } from '../telemetry/http-metrics.ts';
import { measurePool, registryMetrics, sourceGauges } from '../telemetry/registry-metrics.ts';
import { syncSpan, traceRequests } from '../telemetry/traces.ts';
import type { AppOptions } from './app-options.ts';

export interface OperationsOptions extends Pick<
  AppOptions,
  'log' | 'active' | 'stdout' | 'clock' | 'randomId' | 'build' | 'requestLog'
> {
  readonly config: Pick<AppOptions['config'], 'audit' | 'telemetry'>;
  readonly engine: ReadEngine;
  readonly store: Pick<OpenedStore, 'pool'>;
}

/** What watches a running registry: audit log, metrics and traces, each only where it is configured. */
export type Operations = Awaited<ReturnType<typeof openOperations>>;

/** Fails with `audit/unwritable`. */
export async function openOperations(options: OperationsOptions) {
  const { config, clock, engine, store, build } = options;
  const now = (): string => utcTime(clock);
  const telemetry = await openTelemetry(options);
  const { meter, tracing, scrape } = telemetry;
  if (meter !== undefined && store.pool !== undefined) measurePool(meter, store.pool.bind(store));
  const metrics =
    meter === undefined
      ? undefined
      : registryMetrics(meter, { build, now: () => clock.now(), sources: () => sourceGauges(engine) });
  const onLost = (events: number): void => metrics?.auditLost(events);
  const audit = new AuditSwitch((settings) => openAudit(settings, { ...options, now, onLost }));
  try {
    await (await audit.prepare(config.audit)).use();
  } catch (error) {
    await telemetry.close();
    throw error;
  }
  const auditable = options.requestLog !== 'none' || config.audit !== 'off';
  const observers: readonly RequestObserver[] = [
    // Traces first: whoever comes later finds the request's span.
    ...(tracing === undefined ? [] : [traceRequests(tracing)]),
    ...(meter === undefined ? [] : [measureRequests(meter), countFiltered(meter, () => engine.current())]),
    ...(auditable ? [audit.observer] : []),
  ];
  return {
    /** For every listener that serves callers. */
    observers,
    /** Whether requests can be audited; what is not watched from the start cannot be later. */
    auditable,
    tracing,
    /** All metrics as text; undefined where none are kept. */
    scrape: scrape === undefined ? undefined : limitedScrapes(scrape),
    /** A synchronisation has ended. */
    synced: (event: SyncEvent): void => {
      metrics?.syncFinished(event);
      audit.record(syncEvent(event));
      tracing?.record(syncSpan(event), event.duration, event.outcome);
    },
    /** A start or a reload has changed the store to match the configuration. */
    reconciled: (report: ReconcileReport): void => {
      audit.record(reconcileEvent(report));
      logReconciled(options.log, report);
    },
    /** A new configuration was taken over; `restart` names what waits for the next start. */
    reloaded: (difference: ConfigDifference, restart: readonly string[]): void =>
      audit.record(reloadEvent(difference, restart)),
    /** Opens the audit file anew, after it was rotated. */
    reopenAudit: (): Promise<void> => audit.reopen(),
    /** Opens the audit log of a new configuration beside the one in use. Fails with `audit/unwritable`. */
    prepareAudit: (next: AuditConfig): Promise<PreparedAudit> => audit.prepare(next),
    /** Sends and writes what is left. Idempotent. */
    close: async (): Promise<void> => {
      await telemetry.close();
      await audit.close();
    },
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

async function openTelemetry({ config: { telemetry }, ...options }: OperationsOptions): Promise<Telemetry> {
  if (telemetry === 'off') return NO_TELEMETRY;
  if (telemetry.tracing === 'off' && telemetry.metrics === 'off') {
    options.log.warn({}, 'telemetry is enabled, but neither tracing nor metrics are');
    return NO_TELEMETRY;
  }
  const sdk = await import('@skep/core/telemetry/open-telemetry.ts');
  const serviceVersion = telemetry.serviceVersion ?? options.build.version;
  return sdk.openTelemetry({ ...telemetry, serviceVersion }, options);
}
