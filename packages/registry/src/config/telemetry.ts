import { z } from 'zod';

/** The `telemetry` block with its defaults. */
export interface TelemetryOptions {
  readonly serviceName: string;
  /** Undefined: the version of the program. */
  readonly serviceVersion: string | undefined;
  /** Base URL of the collector without trailing slash; `none`: nothing is pushed. */
  readonly endpoint: { readonly url: string } | 'none';
  readonly tracing: 'off' | { readonly sampling: number };
  readonly metrics: 'off' | 'on';
}

export type TelemetryConfig = 'off' | TelemetryOptions;

const DEFAULT_ENDPOINT = 'localhost:4318';
const DEFAULT_SAMPLING = 0.05;
const DEFAULT_SERVICE = 'skep-registry';

const samplingShare = z
  .number()
  .refine((share) => share > 0 && share <= 1, 'must be greater than 0 and at most 1');

/** `telemetry` of the configuration (docs/behaviour/registry.md#metrics, docs/behaviour/registry.md#traces). */
export const telemetryShape = z
  .strictObject({
    enabled: z.boolean().optional().describe('false when absent'),
    serviceName: z.string().min(1, 'must not be empty').optional().describe('`skep-registry` when absent'),
    serviceVersion: z
      .string()
      .min(1, 'must not be empty')
      .optional()
      .describe('the version of the program when absent'),
    endpoint: z
      .string()
      .refine((text) => text === '' || endpointUrl(text, true) !== undefined, {
        message: 'must be host:port or an http or https URL of an OTLP/HTTP collector',
      })
      .optional()
      .describe('an OTLP/HTTP collector, `localhost:4318` when absent; empty pushes nothing'),
    insecure: z.boolean().optional().describe('http for an endpoint without scheme'),
    tracing: z
      .strictObject({
        enabled: z.boolean().optional().describe('false when absent'),
        sampling: samplingShare.optional().describe('share of requests that are traced; 0.05 when absent'),
      })
      .optional(),
    metrics: z
      .strictObject({
        enabled: z
          .boolean()
          .optional()
          .describe('pushed, and at `/metrics` of the internal address; false when absent'),
      })
      .optional(),
  })
  .superRefine(({ endpoint, tracing }, context) => {
    if (endpoint !== '' || tracing?.enabled !== true) return;
    const message = 'must not be empty while tracing is enabled: traces have nowhere else to go';
    context.addIssue({ code: 'custom', path: ['endpoint'], message });
  });

export function resolvedTelemetry(shape: z.infer<typeof telemetryShape> | undefined): TelemetryConfig {
  if (shape?.enabled !== true) return 'off';
  const { serviceName = DEFAULT_SERVICE, serviceVersion, insecure = false, tracing, metrics } = shape;
  const endpoint = shape.endpoint ?? DEFAULT_ENDPOINT;
  const url = endpoint === '' ? undefined : endpointUrl(endpoint, insecure);
  return {
    serviceName,
    serviceVersion,
    endpoint: url === undefined ? 'none' : { url },
    tracing: tracing?.enabled === true ? { sampling: tracing.sampling ?? DEFAULT_SAMPLING } : 'off',
    metrics: metrics?.enabled === true ? 'on' : 'off',
  };
}

/** A scheme in the text decides; without one `insecure` does. Undefined when it is no address. */
function endpointUrl(text: string, insecure: boolean): string | undefined {
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const url = URL.parse(hasScheme ? text : `${insecure ? 'http' : 'https'}://${text}`);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    return undefined;
  return url.href.replace(/\/+$/, '');
}
