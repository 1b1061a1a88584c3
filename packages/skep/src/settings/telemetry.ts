import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';

/** OpenTelemetry of the proxy; keys as existing run configurations spell them. */
export const telemetrySettings = settingsOf({ group: 'Telemetry', notYet: true }, [
  flag('string', 'otel-endpoint', 'OTLP endpoint', { key: 'telemetry_config.endpoint', placeholder: 'url' }),
  flag('string', 'otel-service-name', 'Service name in traces and metrics', {
    key: 'telemetry_config.serviceName',
    placeholder: 'name',
    defaultText: 'skep-<workload name>',
  }),
  flag('pairs', 'otel-headers', 'Header of OTLP requests; repeatable', {
    key: 'telemetry_config.headers',
    placeholder: 'key=value',
    secret: true,
  }),
  flag('bool', 'otel-insecure', 'Reach the OTLP endpoint over HTTP instead of HTTPS', {
    key: 'telemetry_config.insecure',
    default: false,
  }),
  flag('bool', 'otel-tracing-enabled', 'Send traces when there is an endpoint', {
    key: 'telemetry_config.tracingEnabled',
    default: true,
  }),
  flag('bool', 'otel-metrics-enabled', 'Send metrics when there is an endpoint', {
    key: 'telemetry_config.metricsEnabled',
    default: true,
  }),
  flag('float', 'otel-sampling-rate', 'Share of traces that is kept, 0.0 to 1.0', {
    key: 'telemetry_config.samplingRate',
    placeholder: 'rate',
    default: 0.1,
    min: 0,
    max: 1,
  }),
  flag('string', 'otel-custom-attributes', 'Resource attributes, comma-separated', {
    key: 'telemetry_config.customAttributes',
    placeholder: 'k=v,k=v',
  }),
  flag('strings', 'otel-env-vars', 'Environment variables to show in spans; repeatable', {
    key: 'telemetry_config.environmentVariables',
    placeholder: 'A,B',
  }),
  flag('bool', 'otel-enable-prometheus-metrics-path', "Serve /metrics on the proxy's port", {
    key: 'telemetry_config.enablePrometheusMetricsPath',
    default: false,
  }),
  flag('bool', 'otel-use-legacy-attributes', 'Send old attribute names beside the current ones', {
    key: 'telemetry_config.useLegacyAttributes',
    default: true,
  }),
]);
