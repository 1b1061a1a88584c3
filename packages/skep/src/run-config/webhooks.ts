import { isAbsolute, resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { exactly, orEmpty } from '@skep/core/settings/shape.ts';
import type { WebhookSettings, WebhooksSettings } from '@skep/proxy/steps/webhooks/settings.ts';
import {
  checkUserName,
  formatReference,
  isReference,
  parseReference,
  webhookTarget,
} from '../secrets/reference.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import {
  DEFAULT_TIMEOUT_MS,
  webhooksShape,
  webhookTimeout,
  type StoredWebhook,
} from '../settings/webhooks.ts';
import { readConfigFile } from './read-config-file.ts';
import type { RunConfig } from './run-config.ts';

/** The members of a run configuration that say who is asked about calls. */
export type WebhookConfig = {
  readonly [Key in 'validating_webhooks' | 'mutating_webhooks']?: RunConfig[Key] | undefined;
};

const lists = orEmpty<readonly StoredWebhook[]>(webhooksShape, []);
const fileShape = exactly({ validating: lists, mutating: lists });

/**
 * The files of `--webhook-config` in one: a later webhook takes the place of an earlier one of its name. Paths in them are
 * relative to `cwd`. Fails with `config/invalid` naming the member that is wrong, and with `file/*`.
 */
export async function readWebhooks(paths: readonly string[], cwd: string): Promise<WebhookConfig> {
  const files = await Promise.all(
    paths.map((path) =>
      readConfigFile({ path: resolve(cwd, path), what: 'webhook configuration' }, fileShape),
    ),
  );
  const merged = (all: readonly StoredWebhook[]): readonly StoredWebhook[] | undefined => {
    const byName = new Map(all.map((one) => [one.name, withAbsolutePaths(one, cwd)]));
    return byName.size === 0 ? undefined : [...byName.values()];
  };
  return {
    validating_webhooks: merged(files.flatMap(({ validating }) => validating)),
    mutating_webhooks: merged(files.flatMap(({ mutating }) => mutating)),
  };
}

/** A secret that is neither an absolute path nor a reference is a name, so it is none of these. */
export function withAbsolutePaths(webhook: StoredWebhook, cwd: string): StoredWebhook {
  const { tls_config: tls } = webhook;
  if (tls === undefined) return webhook;
  const paths = (['ca_bundle_path', 'client_cert_path', 'client_key_path'] as const).flatMap((key) => {
    const path = tls[key];
    return path === undefined ? [] : [[key, resolve(cwd, path)]];
  });
  return { ...webhook, tls_config: { ...tls, ...Object.fromEntries(paths) } };
}

/** References to the secrets that questions are signed with, as those of the workload are looked up. */
export function webhookReferences(config: WebhookConfig): readonly string[] {
  const names = allOf(config).flatMap((one) => secretName(one) ?? []);
  return [...new Set(names)].map((name) => formatReference({ name, target: webhookTarget(name) }));
}

/**
 * Who is asked about the calls of a workload; undefined where nobody is. Fails with `secrets/not-found` where `secrets` lacks
 * one.
 */
export function webhooksOf(config: WebhookConfig, secrets: SecretEnv): WebhooksSettings | undefined {
  if (allOf(config).length === 0) return undefined;
  const settingsOf = (one: StoredWebhook): WebhookSettings => ({
    name: one.name,
    url: one.url,
    timeoutMs: webhookTimeout(one.timeout) ?? DEFAULT_TIMEOUT_MS,
    failurePolicy: one.failure_policy,
    verify: one.tls_config?.insecure_skip_verify !== true,
    caPath: one.tls_config?.ca_bundle_path,
    certPath: one.tls_config?.client_cert_path,
    keyPath: one.tls_config?.client_key_path,
    secret: secretOf(one, secrets),
  });
  const { validating_webhooks: validating = [], mutating_webhooks: mutating = [] } = config;
  return { validating: validating.map(settingsOf), mutating: mutating.map(settingsOf) };
}

export function allOf({
  validating_webhooks: a = [],
  mutating_webhooks: b = [],
}: WebhookConfig): readonly StoredWebhook[] {
  return [...a, ...b];
}

/** The name of the secret that a webhook's questions are signed with; undefined for a file, and where they are not signed. */
function secretName({ hmac_secret_ref: reference }: StoredWebhook): string | undefined {
  if (reference === undefined || isAbsolute(reference)) return undefined;
  return checkUserName(isReference(reference) ? parseReference(reference).name : reference);
}

function secretOf(webhook: StoredWebhook, secrets: SecretEnv): WebhookSettings['secret'] {
  const { hmac_secret_ref: reference } = webhook;
  if (reference === undefined) return undefined;
  const name = secretName(webhook);
  if (name === undefined) return { file: reference };
  const value = secrets[webhookTarget(name)];
  if (value !== undefined) return { value };
  throw new SkepError('secrets/not-found', {
    message: `the secret of the webhook "${webhook.name}" was not found`,
  });
}
