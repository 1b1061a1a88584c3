import type { PartSettings } from '@skep/proxy/steps/parts.ts';
import { currentAuthz } from './authz.ts';
import { auditOf } from './audit.ts';
import type { RunConfig } from './run-config.ts';
import { EXCHANGE_CLIENT_SECRET, OTEL_HEADERS } from '../secrets/reference.ts';
import { telemetryOf } from './telemetry.ts';
import { exchangeOf } from './token-exchange.ts';
import { rateLimitOf } from './rate-limit.ts';
import { currentTools } from './tools.ts';
import { webhookReferences, webhooksOf } from './webhooks.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';

export interface PartsPlace {
  /** The log of the proxy. */
  readonly logPath: string;
  /** Skep's own. */
  readonly version: string;
  /** Those of the workload; asked for only where they are needed. */
  readonly secrets: () => Promise<SecretEnv>;
  /** Finds a secret of the proxy by its target. */
  readonly secretOf: (target: string) => Promise<string | undefined>;
}

/** What comes with settings in the chain of a workload's proxy. Fails as its parts do. */
export async function partsOf(
  config: RunConfig,
  { logPath, version, secrets: lookUp, secretOf }: PartsPlace,
): Promise<PartSettings> {
  const secrets = webhookReferences(config).length === 0 ? {} : await lookUp();
  const [tools, authz, telemetry] = await Promise.all([
    currentTools(config),
    currentAuthz(config),
    telemetryOf(config, version, config.telemetry_config && (await secretOf(OTEL_HEADERS))),
  ]);
  const secret = config.token_exchange_config && (await secretOf(EXCHANGE_CLIENT_SECRET));
  return {
    audit: auditOf(config, logPath),
    tools,
    authz,
    telemetry,
    webhooks: webhooksOf(config, secrets),
    exchange: exchangeOf(config, secret),
    rateLimit: rateLimitOf(config.rate_limit_config),
  };
}
