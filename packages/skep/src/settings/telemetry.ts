import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { bool, listOf, noNul, orEmpty, recordOf, text, type Shape } from '@skep/core/settings/shape.ts';

/** Other tools write null for "not given". */
const given = <T>(shape: Shape<T>): Shape<T | undefined> => orEmpty<T | undefined>(shape, undefined);

const isShare = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= 1;

/** Other tools write it as a text. */
const share: Shape<number> = (value, fail) => {
  const number = typeof value === 'string' && /^[\d.]{1,20}$/u.test(value) ? Number(value) : value;
  return isShare(number) ? number : fail('must be a number from 0 to 1');
};

/** OpenTelemetry of the proxy; keys as existing run configurations spell them. */
export const telemetrySettings = settingsOf({ group: 'Telemetry' }, [
  flag('string', 'otel-endpoint', 'OTLP endpoint', {
    key: 'telemetry_config.endpoint',
    stored: given(text),
    placeholder: 'url',
  }),
  flag('string', 'otel-service-name', 'Service name in traces and metrics', {
    key: 'telemetry_config.serviceName',
    stored: given(text),
    placeholder: 'name',
    defaultText: 'skep-<workload name>',
  }),
  flag('pairs', 'otel-headers', 'Header of OTLP requests; repeatable', {
    key: 'telemetry_config.headers',
    stored: given(recordOf(noNul)),
    placeholder: 'key=value',
    secret: true,
  }),
  flag('bool', 'otel-insecure', 'Reach the OTLP endpoint over HTTP instead of HTTPS', {
    key: 'telemetry_config.insecure',
    stored: given(bool),
    default: false,
  }),
  flag('bool', 'otel-tracing-enabled', 'Send traces when there is an endpoint', {
    key: 'telemetry_config.tracingEnabled',
    stored: given(bool),
    default: true,
  }),
  flag('bool', 'otel-metrics-enabled', 'Send metrics when there is an endpoint', {
    key: 'telemetry_config.metricsEnabled',
    stored: given(bool),
    default: true,
  }),
  flag('float', 'otel-sampling-rate', 'Share of traces that is kept, 0.0 to 1.0', {
    key: 'telemetry_config.samplingRate',
    stored: given(share),
    placeholder: 'rate',
    default: 0.1,
    min: 0,
    max: 1,
  }),
  flag('string', 'otel-custom-attributes', 'Resource attributes, comma-separated', {
    key: 'telemetry_config.customAttributes',
    stored: given(recordOf(noNul)),
    placeholder: 'k=v,k=v',
  }),
  flag('strings', 'otel-env-vars', 'Environment variables to show in spans; repeatable', {
    key: 'telemetry_config.environmentVariables',
    stored: given(listOf(noNul)),
    placeholder: 'A,B',
  }),
  flag('bool', 'otel-enable-prometheus-metrics-path', "Serve /metrics on the proxy's port", {
    key: 'telemetry_config.enablePrometheusMetricsPath',
    stored: given(bool),
    default: false,
  }),
  flag('bool', 'otel-use-legacy-attributes', 'Send old attribute names beside the current ones', {
    key: 'telemetry_config.useLegacyAttributes',
    stored: given(bool),
    default: true,
  }),
]);
