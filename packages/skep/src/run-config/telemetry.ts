import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { ProxyTelemetry } from '@skep/proxy/steps/telemetry/settings.ts';
import { OTEL_HEADERS } from '../secrets/reference.ts';
import type { RunConfig } from './run-config.ts';

/** The members of a run configuration that say what is measured of the calls of a workload. */
export type TelemetryMembers = {
  readonly [Key in 'telemetry_config' | 'telemetry_environment']?: RunConfig[Key] | undefined;
};
export type TelemetryConfig = NonNullable<RunConfig['telemetry_config']>;

const MAX_PEM_BYTES = 1024 * 1024;
const USUAL_SHARE = 0.1;

/** True where somebody gets to see what is measured. */
export function isMeasured({ endpoint, enablePrometheusMetricsPath }: TelemetryConfig): boolean {
  return Boolean(endpoint) || enablePrometheusMetricsPath === true;
}

/** Where the collector is; its scheme is `insecure`'s to say. Undefined where none is named. */
export function collectorOf({ endpoint, insecure }: TelemetryConfig): string | undefined {
  const rest = endpoint
    ?.trim()
    .replace(/^https?:\/\//iu, '')
    .replace(/\/+$/u, '');
  return rest ? `${insecure === true ? 'http' : 'https'}://${rest}` : undefined;
}

/**
 * What the proxy of a workload measures (docs/behaviour/proxy.md#telemetry), and shows the collector `headers`, a JSON object;
 * undefined where nobody gets to see it. Fails with `file/*` for authorities that cannot be read, and with
 * `usage/invalid-value` for headers that are none.
 */
export async function telemetryOf(
  {
    name,
    telemetry_config: config,
    telemetry_environment: environment = {},
  }: TelemetryMembers & { readonly name: string },
  version: string,
  headers?: string,
): Promise<ProxyTelemetry | undefined> {
  if (config === undefined || !isMeasured(config)) return undefined;
  const url = collectorOf(config);
  const { samplingRate, caCertPath } = config;
  const isPushed = url !== undefined && (config.metricsEnabled ?? true);
  const scrapes = config.enablePrometheusMetricsPath ?? false;
  const isTraced = url !== undefined && (config.tracingEnabled ?? true);
  return {
    serviceName: config.serviceName || `skep-${name}`,
    serviceVersion: config.serviceVersion || version,
    endpoint: url === undefined ? 'none' : { url },
    headers: { ...config.headers, ...(headers === undefined ? {} : headersIn(headers)) },
    ca: caCertPath
      ? await readText(caCertPath, { maxBytes: MAX_PEM_BYTES, what: 'certificates' })
      : undefined,
    attributes: config.customAttributes ?? {},
    tracing: isTraced ? { sampling: samplingRate ?? USUAL_SHARE } : 'off',
    metrics: isPushed ? 'on' : scrapes ? 'scraped' : 'off',
    scrapes,
    legacyNames: config.useLegacyAttributes ?? true,
    environment,
  };
}

function headersIn(text: string): Readonly<Record<string, string>> {
  const said = parsedJson(text);
  if (isRecord(said) && Object.values(said).every((value) => typeof value === 'string'))
    return said as Readonly<Record<string, string>>;
  throw new SkepError('usage/invalid-value', {
    message: `the secret ${OTEL_HEADERS} is no JSON object of headers`,
    hint: 'write {"Name":"value"}, or give the headers with --otel-headers',
  });
}
