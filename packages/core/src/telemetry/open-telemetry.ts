import { ExportResultCode, type ExportResult } from '@opentelemetry/core';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { resourceFromAttributes, type Resource } from '@opentelemetry/resources';
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type CollectionResult,
  type MetricData,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node';
import type { Log } from '../log/log.ts';
import type { ActiveSpan } from './active-span.ts';
import { metricExporter, spanExporter, type OtlpTarget } from './otlp.ts';
import type { Telemetry, TelemetrySettings } from './telemetry.ts';
import { Tracing } from './tracing.ts';

export interface TelemetryServices {
  readonly log: Log;
  readonly active: ActiveSpan;
}

const PUSH_EVERY_MS = 60_000;
/** What a collector that does not answer may delay the end of the process by. */
const FLUSH_MS = 5_000;
/** Of one delivery with its retries; below FLUSH_MS, so that none outlives the last flush. */
const EXPORT_TIMEOUT_MS = 4_000;

/**
 * Starts the OpenTelemetry SDK without touching its globals. Import this file only when something is on: the SDK costs
 * 70 ms and 19 MB.
 */
export function openTelemetry(settings: TelemetrySettings, services: TelemetryServices): Telemetry {
  const resource = resourceFromAttributes({
    ...settings.attributes,
    'service.name': settings.serviceName,
    'service.version': settings.serviceVersion,
  });
  const traces = openTraces(settings, services, resource);
  const metrics = openMetrics(settings, services, resource);
  const name = settings.serviceName;
  let closing: Promise<void> | undefined;
  const shutdown = async (): Promise<void> => {
    const ends = [traces, metrics?.provider].map((provider) => provider?.shutdown() ?? Promise.resolve());
    for (const result of await settledWithin(FLUSH_MS, ends)) {
      if (result.status === 'rejected')
        services.log.warn({ err: result.reason }, 'telemetry was not sent completely');
    }
  };
  return {
    tracing: traces === undefined ? undefined : new Tracing(traces.getTracer(name), services.active),
    meter: metrics?.provider.getMeter(name),
    scrape: metrics?.scrape,
    close: () => (closing ??= shutdown()),
  };
}

type Traces = BasicTracerProvider;

function openTraces(
  { tracing, endpoint, ...collector }: TelemetrySettings,
  { log }: TelemetryServices,
  resource: Resource,
): Traces | undefined {
  if (tracing === 'off') return undefined;
  const processor = (url: string) =>
    new BatchSpanProcessor(reportedExport(spanExporter(target(url, 'traces', collector)), 'traces', log));
  return new BasicTracerProvider({
    resource,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(tracing.sampling) }),
    spanProcessors: endpoint === 'none' ? [] : [processor(endpoint.url)],
  });
}

interface Metrics {
  readonly provider: MeterProvider;
  readonly scrape: () => Promise<string>;
}

function openMetrics(
  { metrics, endpoint, pushEveryMs, ...collector }: TelemetrySettings,
  { log }: TelemetryServices,
  resource: Resource,
): Metrics | undefined {
  if (metrics === 'off') return undefined;
  const prometheus = new PrometheusExporter({ preventServerStart: true });
  const every = pushEveryMs ?? PUSH_EVERY_MS;
  const push = (url: string) => {
    const exporter = reportedExport(metricExporter(target(url, 'metrics', collector)), 'metrics', log);
    const timing = { exportIntervalMillis: every, exportTimeoutMillis: Math.min(every, EXPORT_TIMEOUT_MS) };
    return new PushingReader({ exporter, ...timing }, prometheus);
  };
  const provider = new MeterProvider({
    resource,
    // Of what a view names all readers share one record; without one each keeps its own, and every call pays for all.
    views: [{ instrumentName: '*' }],
    readers: endpoint === 'none' || metrics === 'scraped' ? [prometheus] : [prometheus, push(endpoint.url)],
  });
  const serializer = new PrometheusSerializer();
  const scrape = async (): Promise<string> => {
    const { resourceMetrics, errors } = await prometheus.collect();
    for (const err of errors) log.warn({ err }, 'a metric could not be read');
    return serializer.serialize(withUnits(resourceMetrics));
  };
  return { provider, scrape };
}

/**
 * Pushes. What it is told is kept for the reader that shares its records until that is asked too, and nobody may ever scrape: so
 * both are asked together.
 */
class PushingReader extends PeriodicExportingMetricReader {
  readonly #scraped: PrometheusExporter;

  constructor(
    options: ConstructorParameters<typeof PeriodicExportingMetricReader>[0],
    scraped: PrometheusExporter,
  ) {
    super(options);
    this.#scraped = scraped;
  }

  override async collect(
    ...options: Parameters<PeriodicExportingMetricReader['collect']>
  ): Promise<CollectionResult> {
    const collected = await super.collect(...options);
    // It fails once it is closed, which it may be before the last push.
    await this.#scraped.collect().catch(() => undefined);
    return collected;
  }
}

/** Prometheus names end in their unit, which the serialiser leaves to others. */
function withUnits(collected: ResourceMetrics): ResourceMetrics {
  const named = (metric: MetricData): MetricData =>
    metric.descriptor.unit === 's'
      ? { ...metric, descriptor: { ...metric.descriptor, name: `${metric.descriptor.name}.seconds` } }
      : metric;
  const scopeMetrics = collected.scopeMetrics.map((scope) => ({
    ...scope,
    metrics: scope.metrics.map(named),
  }));
  return { ...collected, scopeMetrics };
}

function target(
  endpoint: string,
  signal: 'traces' | 'metrics',
  { headers, ca }: Pick<TelemetrySettings, 'headers' | 'ca'>,
): OtlpTarget {
  return {
    url: `${endpoint}/v1/${signal}`,
    timeoutMillis: EXPORT_TIMEOUT_MS,
    ...(headers === undefined ? {} : { headers: { ...headers } }),
    ...(ca === undefined ? {} : { httpAgentOptions: { ca } }),
  };
}

/** The results, or none when it takes too long. */
async function settledWithin(
  milliseconds: number,
  work: readonly Promise<void>[],
): Promise<readonly PromiseSettledResult<void>[]> {
  const { promise: late, resolve } = Promise.withResolvers<readonly PromiseSettledResult<void>[]>();
  const timer = setTimeout(() => resolve([]), milliseconds);
  try {
    return await Promise.race([Promise.allSettled(work), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The half of an OTLP exporter that sends. */
interface Exporter<Batch> {
  export(batch: Batch, done: (result: ExportResult) => void): void;
}

/**
 * Tells in the log when a collector stops answering and when it answers again; once each, since a collector that is
 * away for an hour is one event and not sixty. Returns the exporter it was given.
 */
function reportedExport<Batch, E extends Exporter<Batch>>(
  exporter: E & Exporter<Batch>,
  signal: 'traces' | 'metrics',
  log: Log,
): E {
  let failing = false;
  const send = exporter.export.bind(exporter);
  const plain: Exporter<Batch> = exporter;
  plain.export = (batch, done) =>
    send(batch, (result) => {
      const failed = result.code !== ExportResultCode.SUCCESS;
      if (failed && !failing) log.warn({ signal, err: result.error }, 'telemetry cannot be sent');
      if (!failed && failing) log.info({ signal }, 'telemetry is sent again');
      failing = failed;
      done(result);
    });
  return exporter;
}
