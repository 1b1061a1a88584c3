import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { AuthzSettings } from './authorization.ts';
import type { AuditSettings } from './audit/settings.ts';
import type { Part, PartServices } from './part.ts';
import type { ProxyTelemetry } from './telemetry/settings.ts';
import type { TokenExchangeSettings } from './token-exchange.ts';
import type { RateLimitSettings } from './rate-limit.ts';
import type { ToolSettings } from './tool-view.ts';
import type { WebhooksSettings } from './webhooks/settings.ts';

/** The parts of one chain (a part is in part.ts); one whose settings are absent is not loaded. */
export interface PartSettings {
  readonly audit?: AuditSettings | undefined;
  readonly tools?: ToolSettings | undefined;
  readonly authz?: AuthzSettings | undefined;
  readonly telemetry?: ProxyTelemetry | undefined;
  readonly webhooks?: WebhooksSettings | undefined;
  readonly exchange?: TokenExchangeSettings | undefined;
  readonly rateLimit?: RateLimitSettings | undefined;
}

interface Row {
  /** Where its settings come from, as people know it. */
  readonly setting: string;
  /** Imports and opens the part, where there are settings for it. Fails with what is wrong with them. */
  readonly open: (settings: PartSettings, services: PartServices) => Promise<Part | undefined>;
}

/** Every part that a chain can have. */
const PARTS: readonly Row[] = [
  {
    setting: '--enable-audit or --audit-config',
    open: async ({ audit }, services) => audit && (await import('./audit.ts')).openAudit(audit, services),
  },
  {
    setting: '--tools or --tools-override',
    open: async ({ tools }) => tools && (await import('./tool-filter.ts')).openTools(tools),
  },
  {
    setting: '--authz-config',
    open: async ({ authz }, services) =>
      authz && (await import('./authorization.ts')).openAuthorization(authz, services),
  },
  {
    setting: '--otel-endpoint or --otel-enable-prometheus-metrics-path',
    open: async ({ telemetry }, services) =>
      telemetry && (await import('./telemetry.ts')).openProxyTelemetry(telemetry, services),
  },
  {
    setting: 'rate_limit_config',
    open: async ({ rateLimit }, services) =>
      rateLimit && (await import('./rate-limit.ts')).openRateLimit(rateLimit, services),
  },
  {
    setting: '--webhook-config',
    open: async ({ webhooks, tools }, services) =>
      webhooks && (await import('./webhooks.ts')).openWebhooks(webhooks, tools, services),
  },
  {
    setting: '--token-exchange-…',
    open: async ({ exchange }, services) =>
      exchange && (await import('./token-exchange.ts')).openTokenExchange(exchange, services),
  },
];

/**
 * Opens the parts that have settings, and gives back their steps together. Fails with `proxy/step-unbuildable` naming the
 * setting, and then nothing that was opened is left.
 */
export async function openParts(settings: PartSettings, services: PartServices): Promise<Part> {
  const opened = await Promise.allSettled(PARTS.map((row) => openPart(row, settings, services)));
  const parts = opened.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []));
  const close = async (): Promise<void> =>
    void (await Promise.all(parts.map(async (part) => part.close?.())));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await close();
    throw failed.reason;
  }
  const scrape = parts.map((part) => part.scrape).find((one) => one !== undefined);
  const credentialsFor = parts.map((part) => part.credentialsFor).find((one) => one !== undefined);
  return {
    steps: Object.assign({}, ...parts.map(({ steps }) => steps)),
    ...(scrape && { scrape }),
    ...(credentialsFor && { credentialsFor }),
    toolsChanged() {
      for (const part of parts) part.toolsChanged?.();
    },
    serverStarted() {
      for (const part of parts) {
        part.toolsChanged?.();
        part.serverStarted?.();
      }
    },
    close,
  };
}

async function openPart(
  { setting, open }: Row,
  settings: PartSettings,
  services: PartServices,
): Promise<Part | undefined> {
  try {
    return await open(settings, services);
  } catch (cause) {
    throw new SkepError('proxy/step-unbuildable', {
      message: cause instanceof SkepError ? `${setting}: ${cause.message}` : `${setting} cannot be used`,
      hint: cause instanceof SkepError ? cause.hint : undefined,
      cause,
    });
  }
}
