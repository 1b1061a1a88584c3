import { SkepError } from '@skep/core/errors/skep-error.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { parseReference } from '../secrets/reference.ts';
import { readWebhooks, webhookReferences, webhooksOf, type WebhookConfig } from '../run-config/webhooks.ts';
import type { RunValues } from '../settings/run-settings.ts';

/**
 * What `--webhook-config` says, as it is saved. Fails with `usage/invalid-value`, `config/invalid`, `fetch/ca-bundle` or
 * `file/*` for what no proxy could be started with.
 */
export async function planWebhooks(
  { webhookConfig: paths = [] }: RunValues,
  cwd: string,
): Promise<WebhookConfig> {
  if (paths.includes(''))
    throw new SkepError('usage/invalid-value', {
      message: '--webhook-config is empty',
      hint: 'give it a file, or leave it out: without it nobody is asked about calls',
    });
  if (paths.length === 0) return { validating_webhooks: undefined, mutating_webhooks: undefined };
  const config = await readWebhooks(paths, cwd);
  await checkWebhooks(config);
  return config;
}

/** Reads what the webhooks name, but for secrets of the store, to hear what is wrong with it. Nobody is asked. */
export async function checkWebhooks(config: WebhookConfig): Promise<void> {
  const targets = webhookReferences(config).map((text) => [parseReference(text).target, 'x']);
  const settings = webhooksOf(config, Object.fromEntries(targets) as Record<string, string>);
  if (settings === undefined) return;
  const { openWebhook } = await import('@skep/proxy/steps/webhooks/ask-webhook.ts');
  const services = { clock: systemClock, name: '', transport: '' };
  for (const one of [...settings.validating, ...settings.mutating])
    (await openWebhook(one, services)).close();
}
