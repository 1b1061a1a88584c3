import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isSecretName } from '@skep/core/log/redact.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import {
  collectorOf,
  isMeasured,
  telemetryOf,
  type TelemetryConfig,
  type TelemetryMembers,
} from '../run-config/telemetry.ts';
import type { RunValues } from '../settings/run-settings.ts';
import { telemetrySettings } from '../settings/telemetry.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Surroundings } from './plan.ts';

/** What a run decided of what is measured of its calls. */
export interface PlannedTelemetry {
  /** As it is saved; its members are undefined where nobody gets to see it. */
  readonly config: TelemetryMembers;
  /** For the collector, a JSON object. A secret. */
  readonly headers: string | undefined;
  /** Lines for the person. */
  readonly warnings: readonly string[];
}

type Around = Pick<Surroundings, 'env' | 'cwd'>;

/**
 * What the flags `--otel-…` say, and the configuration file where they say nothing. Fails with `usage/invalid-value` or
 * `usage/conflict` for what no proxy could be started with.
 */
export async function planTelemetry(
  values: RunValues,
  settings: Settings,
  around: Around,
): Promise<PlannedTelemetry> {
  const {
    otelEndpoint: endpoint = '',
    otelHeaders,
    otelCustomAttributes: attributes,
    otelEnvVars: variables,
  } = values;
  const isPlain = /^http:\/\//iu.test(endpoint.trim());
  const config: TelemetryConfig = {
    ...(endpoint.trim() === '' ? {} : { endpoint: endpoint.trim().replace(/^https?:\/\//iu, '') }),
    ...(values.otelServiceName ? { serviceName: values.otelServiceName } : {}),
    ...(values.otelInsecure || isPlain ? { insecure: true } : {}),
    ...(values.otelTracingEnabled ? {} : { tracingEnabled: false }),
    ...(values.otelMetricsEnabled ? {} : { metricsEnabled: false }),
    samplingRate: values.otelSamplingRate,
    ...(attributes ? { customAttributes: attributesIn(attributes) } : {}),
    ...(variables?.length ? { environmentVariables: variables } : {}),
    ...(values.otelEnablePrometheusMetricsPath ? { enablePrometheusMetricsPath: true } : {}),
    ...(values.otelUseLegacyAttributes ? {} : { useLegacyAttributes: false }),
  };
  if (!isMeasured(config)) return { config: NOTHING, headers: undefined, warnings: unused(settings) };
  const checked = await checkedTelemetry({ telemetry_config: config }, around);
  const warnings =
    isPlain && !values.otelInsecure
      ? ['Warning: what is measured goes to the collector unencrypted, as its http:// says\n']
      : [];
  const headers = otelHeaders && JSON.stringify(otelHeaders);
  return { config: checked, headers, warnings };
}

const NOTHING: TelemetryMembers = { telemetry_config: undefined, telemetry_environment: undefined };

/** Flags that say how, where nobody gets to see anything. */
function unused(settings: Settings): readonly string[] {
  const given = telemetrySettings.filter(({ name, ...row }) => {
    const setting = settings.get(name);
    const isDefault = 'default' in row && setting?.value === row.default;
    return setting?.origin === 'flag' && setting.value !== '' && !isDefault;
  });
  return given.map(
    ({ flag }) => `Warning: --${flag} has no effect without --otel-endpoint: nothing is measured\n`,
  );
}

function attributesIn(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(',').map((pair) => {
    const at = pair.indexOf('=');
    const name = pair.slice(0, at).trim();
    if (at === -1 || name === '')
      throw invalid(`--otel-custom-attributes: "${pair.trim()}" is no pair`, 'write key=value,key=value');
    return [name, pair.slice(at + 1).trim()];
  });
  return Object.fromEntries(pairs) as Record<string, string>;
}

/**
 * With what the variables hold that spans are to show, and an absolute path of authorities, which can be read. Fails as
 * `planTelemetry`, and with `file/*`.
 */
export async function checkedTelemetry(
  { telemetry_config: given }: TelemetryMembers,
  { env, cwd }: Around,
): Promise<Pick<RunConfig, keyof TelemetryMembers>> {
  if (given === undefined) return {};
  const config = given.caCertPath ? { ...given, caCertPath: resolve(cwd, given.caCertPath) } : given;
  const url = collectorOf(config);
  if (url !== undefined) checkCollector(url, config);
  await telemetryOf({ name: 'x', telemetry_config: config }, '');
  const names = isMeasured(config) ? (config.environmentVariables ?? []).map((name) => name.trim()) : [];
  const shown = names.filter((name) => name !== '').map((name) => [name, shownVariable(name, env)]);
  const environment = Object.fromEntries(shown.filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
  return {
    telemetry_config: config,
    ...(shown.length === 0 ? {} : { telemetry_environment: environment }),
  };
}

function checkCollector(
  url: string,
  { tracingEnabled, metricsEnabled, enablePrometheusMetricsPath }: TelemetryConfig,
): void {
  const parsed = URL.parse(url);
  if (parsed === null || parsed.username !== '' || parsed.password !== '' || /[?#]/u.test(url))
    throw invalid(
      'the OTLP endpoint is no address of a host, with or without a path',
      'write host:port; logins go into --otel-headers',
    );
  if ((tracingEnabled ?? true) || (metricsEnabled ?? true) || enablePrometheusMetricsPath === true) return;
  throw new SkepError('usage/conflict', {
    message: 'an OTLP endpoint with neither traces nor metrics',
    hint: 'enable one of them, or leave out --otel-endpoint',
  });
}

/** Spans go to another machine, and are read by people who may not have this one's secrets. */
function shownVariable(name: string, env: Surroundings['env']): string | undefined {
  if (!/^[A-Za-z_]\w*$/u.test(name))
    throw invalid(`--otel-env-vars: "${name}" is no name of a variable`, 'write A,B');
  if (isSecretName(name) || /key$/iu.test(name))
    throw invalid(
      `--otel-env-vars: "${name}" looks like a secret`,
      'spans show what the variable holds; leave it out',
    );
  return env[name];
}

function invalid(message: string, hint: string): SkepError {
  return new SkepError('usage/invalid-value', { message, hint });
}
