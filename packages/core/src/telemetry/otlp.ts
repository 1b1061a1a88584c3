import { OTLPMetricExporterBase } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http';
import {
  MetricsExporterMetricsHelper,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
  TraceExporterMetricsHelper,
} from '@opentelemetry/otlp-transformer';
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics';
import type { SpanExporter } from '@opentelemetry/sdk-trace-node';

/** Where a collector is, and what it is shown. */
export interface OtlpTarget {
  readonly url: string;
  readonly timeoutMillis: number;
  readonly headers?: Record<string, string>;
  /** Authorities, PEM. */
  readonly httpAgentOptions?: { readonly ca: string };
}

const PROTOBUF = { 'Content-Type': 'application/x-protobuf' };

/** Spans over OTLP/HTTP in protobuf, which every collector takes (OTLP 1.x). */
export function spanExporter(target: OtlpTarget): SpanExporter {
  const options = convertLegacyHttpOptions(target, 'TRACES', 'v1/traces', PROTOBUF);
  return new OTLPExporterBase(
    createOtlpHttpExportDelegate(
      options,
      ProtobufTraceSerializer,
      'otlp_http_span_exporter',
      TraceExporterMetricsHelper,
      undefined,
    ),
  );
}

/** Metrics likewise. */
export function metricExporter(target: OtlpTarget): PushMetricExporter {
  const options = convertLegacyHttpOptions(target, 'METRICS', 'v1/metrics', PROTOBUF);
  return new OTLPMetricExporterBase(
    createOtlpHttpExportDelegate(
      options,
      ProtobufMetricsSerializer,
      'otlp_http_metric_exporter',
      MetricsExporterMetricsHelper,
      undefined,
    ),
  );
}
