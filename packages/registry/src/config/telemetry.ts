import type { TelemetrySettings } from '@skep/core/telemetry/telemetry.ts';
import { z } from 'zod';
import { nonEmpty } from '../shape/texts.ts';

/** The `telemetry` block with its defaults. */
export interface TelemetryOptions extends Pick<
  TelemetrySettings,
  'serviceName' | 'endpoint' | 'tracing' | 'metrics'
> {
  /** Undefined: the version of the program. */
  readonly serviceVersion: string | undefined;
}

export type TelemetryConfig = 'off' | TelemetryOptions;

const samplingShare = z
  .number()
  .refine((share) => share > 0 && share <= 1, 'must be greater than 0 and at most 1');

export const telemetryShape = z
  .strictObject({
    enabled: z.boolean().default(false),
    serviceName: nonEmpty.default('skep-registry'),
    serviceVersion: nonEmpty.optional().describe('the version of the program when absent'),
    endpoint: z
      .string()
      .refine((text) => text === '' || endpointUrl(text, true) !== undefined, {
        message: 'must be host:port or an http or https URL of an OTLP/HTTP collector',
      })
      .default('localhost:4318')
      .describe('an OTLP/HTTP collector; empty pushes nothing'),
    insecure: z.boolean().default(false).describe('http for an endpoint without scheme'),
    tracing: z
      .strictObject({
        enabled: z.boolean().default(false),
        sampling: samplingShare.default(0.05).describe('share of requests that are traced'),
      })
      .prefault({}),
    metrics: z
      .strictObject({
        enabled: z.boolean().default(false).describe('pushed, and at `/metrics` of the internal address'),
      })
      .prefault({}),
  })
  .superRefine(({ endpoint, tracing }, context) => {
    if (endpoint !== '' || !tracing.enabled) return;
    const message = 'must not be empty while tracing is enabled: traces have nowhere else to go';
    context.addIssue({ code: 'custom', path: ['endpoint'], message });
  })
  .transform(({ enabled, endpoint, insecure, tracing, metrics, ...service }): TelemetryConfig => {
    if (!enabled) return 'off';
    const url = endpoint === '' ? undefined : endpointUrl(endpoint, insecure);
    return {
      serviceName: service.serviceName,
      serviceVersion: service.serviceVersion,
      endpoint: url === undefined ? 'none' : { url },
      tracing: tracing.enabled ? { sampling: tracing.sampling } : 'off',
      metrics: metrics.enabled ? 'on' : 'off',
    };
  });

/** A scheme in the text decides; without one `insecure` does. Undefined when it is no address. */
function endpointUrl(text: string, insecure: boolean): string | undefined {
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const url = URL.parse(hasScheme ? text : `${insecure ? 'http' : 'https'}://${text}`);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    return undefined;
  return url.href.replace(/\/+$/, '');
}
