import { join } from 'node:path';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { withLock } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { valuesOf, settingsOf, type Values } from '@skep/core/settings/define-settings.ts';
import type { FieldValue, Settings } from '@skep/core/settings/field.ts';
import { fromEnv } from '@skep/core/settings/from-env.ts';
import { fromFile } from '@skep/core/settings/from-file.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import type * as Yaml from 'yaml';
import type { Document } from 'yaml';

/** Keys of `~/.config/skep/config.yaml` (docs/behaviour/run.md#application-settings). */
export const appSettings = settingsOf({ group: 'Configuration file' }, [
  {
    name: 'registryApiUrl',
    kind: 'string',
    key: 'registry_api_url',
    brief: 'Catalogue that speaks the MCP Registry API v0.1',
  },
  {
    name: 'registryUrl',
    kind: 'string',
    key: 'registry_url',
    brief: 'Catalogue file at an address',
  },
  {
    name: 'localRegistryPath',
    kind: 'path',
    key: 'local_registry_path',
    brief: 'Catalogue file on this machine',
  },
  {
    name: 'allowPrivateRegistryIp',
    kind: 'bool',
    key: 'allow_private_registry_ip',
    brief: 'The catalogue may be at a private address or plain http',
    default: false,
  },
  {
    name: 'registryAuthType',
    kind: 'choice',
    key: 'registry_auth.type',
    choices: ['oauth'],
    brief: 'How requests to the catalogue say who asks; skep login sets it, with what follows',
  },
  {
    name: 'registryAuthServer',
    kind: 'string',
    key: 'registry_auth.oauth.server',
    brief: 'The server of registries that somebody signed in to, or will',
  },
  {
    name: 'registryAuthIssuer',
    kind: 'string',
    key: 'registry_auth.oauth.issuer',
    brief: 'Identity provider to sign in at',
  },
  {
    name: 'registryAuthClientId',
    kind: 'string',
    key: 'registry_auth.oauth.client_id',
    brief: 'What Skep is called there',
  },
  {
    name: 'registryAuthAudience',
    kind: 'string',
    key: 'registry_auth.oauth.audience',
    brief: 'What tokens are asked for',
  },
  {
    name: 'registryAuthScopes',
    kind: 'strings',
    key: 'registry_auth.oauth.scopes',
    brief: 'Scopes that are asked for',
  },
  {
    name: 'registryAuthAgreed',
    kind: 'string',
    key: 'registry_auth.oauth.agreed',
    brief: 'Mark of what somebody agreed to sign in with: provider, client, audience and scopes',
  },
  {
    name: 'caCertificatePath',
    kind: 'path',
    key: 'ca_certificate_path',
    brief:
      "Extra certificate authority (PEM) for downloads during a build, and for Skep's own requests of a run",
  },
  {
    name: 'frontPort',
    kind: 'int',
    env: 'SKEP_FRONT_PORT',
    key: 'front_port',
    brief: 'Port of the front door, the one address of all workloads; 0 for none',
    default: 4243,
    min: 0,
    max: 65_535,
  },
  {
    name: 'isolation',
    kind: 'choice',
    key: 'isolation',
    choices: ['on', 'off'],
    brief: 'Whether new servers are isolated unless --isolate-network says otherwise',
    default: 'off',
  },
  {
    name: 'imageVerification',
    kind: 'choice',
    key: 'image_verification',
    choices: ['warn', 'enabled', 'disabled'],
    brief: 'What to do about images without a verified origin, unless --image-verification says otherwise',
    defaultText: 'warn',
  },
  {
    name: 'sigstoreTrustedRoot',
    kind: 'path',
    key: 'sigstore_trusted_root',
    brief: 'Root of trust (trusted_root.json) that images are verified by, for a Sigstore of your own',
  },
  {
    name: 'secretsProvider',
    kind: 'choice',
    key: 'secrets.provider_type',
    choices: ['encrypted', 'keyring', '1password', 'environment', 'none'],
    brief: 'Where secrets are kept',
  },
  {
    name: 'buildEnv',
    kind: 'pairs',
    key: 'build_env',
    brief: 'Variables for what fetches packages',
  },
  {
    name: 'buildEnvFromSecrets',
    kind: 'pairs',
    key: 'build_env_from_secrets',
    brief: 'The same, from the secrets manager',
  },
  {
    name: 'buildEnvFromShell',
    kind: 'strings',
    key: 'build_env_from_shell',
    brief: 'The same, from the environment of the command',
  },
  {
    name: 'buildAuthFiles',
    kind: 'pairs',
    key: 'build_auth_files',
    brief: 'Login files for what fetches packages, which the secrets manager keeps',
  },
  {
    name: 'runtimeConfigs',
    kind: 'json',
    key: 'runtime_configs',
    brief: 'Base images and packages of builds, for npx, uvx and go',
  },
  { name: 'otelEndpoint', kind: 'string', key: 'otel.endpoint', brief: 'Used for --otel-endpoint' },
  {
    name: 'otelSamplingRate',
    kind: 'float',
    key: 'otel.sampling-rate',
    brief: 'Used for --otel-sampling-rate',
    min: 0,
    max: 1,
  },
  { name: 'otelEnvVars', kind: 'strings', key: 'otel.env-vars', brief: 'Used for --otel-env-vars' },
  { name: 'otelInsecure', kind: 'bool', key: 'otel.insecure', brief: 'Used for --otel-insecure' },
  {
    name: 'otelEnablePrometheusMetricsPath',
    kind: 'bool',
    key: 'otel.enable-prometheus-metrics-path',
    brief: 'Used for --otel-enable-prometheus-metrics-path',
  },
  {
    name: 'otelTracingEnabled',
    kind: 'bool',
    key: 'otel.tracing-enabled',
    brief: 'Used for --otel-tracing-enabled',
  },
  {
    name: 'otelMetricsEnabled',
    kind: 'bool',
    key: 'otel.metrics-enabled',
    brief: 'Used for --otel-metrics-enabled',
  },
  {
    name: 'otelUseLegacyAttributes',
    kind: 'bool',
    key: 'otel.use-legacy-attributes',
    brief: 'Used for --otel-use-legacy-attributes',
  },
]);

export type AppConfig = Values<typeof appSettings>;

const MAX_BYTES = 1024 * 1024;

/**
 * The user's configuration, over which variables of `env` win; defaults when there is no file. An unknown key or wrong
 * type is `config/invalid`.
 */
export async function loadAppConfig(
  places: Places,
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<AppConfig> {
  const layers = [fromEnv(appSettings, env), await readAppSettings(places)];
  return valuesOf(appSettings, mergeSettings(appSettings, layers));
}

/** As `loadAppConfig`: only what the file says. */
export async function readAppSettings(places: Places): Promise<Settings> {
  const file = { path: places.configFile, text: await configText(places), format: 'yaml' } as const;
  return mergeSettings(appSettings, [await fromFile(appSettings, file)]);
}

/**
 * Sets keys of the file, dotted where nested, or removes those whose value is undefined; comments and other keys stay. The result is checked
 * before it is written, so a broken file is never made worse.
 */
export async function updateAppConfig(
  places: Places,
  changes: Readonly<Record<string, FieldValue | undefined>>,
): Promise<void> {
  const lock = join(places.locksDir, 'config.lock');
  await withLock(lock, { waitMs: 5_000, what: 'the configuration file' }, async () => {
    await loadAppConfig(places);
    const yaml = await import('yaml');
    const document: Document = yaml.parseDocument(await configText(places));
    // A file without any key has no mapping to change yet.
    document.contents ??= document.createNode({});
    for (const [key, value] of Object.entries(changes)) {
      if (value === undefined) removeKey(document, key.split('.'), yaml);
      else document.setIn(key.split('.'), value);
    }
    await atomicWrite(places.configFile, textOf(document, yaml), { mode: 0o600 });
  });
}

/** Removes a key, and what it was within when that holds nothing else; comments above them move to the top of the file. */
function removeKey(
  document: Document,
  [name, ...below]: readonly string[],
  yaml: typeof Yaml,
  within: unknown = document.contents,
): void {
  if (!yaml.isMap(within)) return;
  const pair = within.items.find(({ key }) => yaml.isScalar(key) && key.value === name);
  if (!pair) return;
  const { key, value } = pair;
  if (below.length > 0) {
    removeKey(document, below, yaml, value);
    if (!yaml.isMap(value) || value.items.length > 0) return;
  }
  within.delete(key);
  const comments = [key, value].map((node) => (yaml.isNode(node) ? node.commentBefore : undefined));
  const all = [document.commentBefore, ...comments].filter(Boolean);
  if (all.length > 0) document.commentBefore = all.join('\n');
}

/** An empty mapping would print as `{}`: what is left then is the comments. */
function textOf(document: Document, { isMap }: typeof Yaml): string {
  if (!isMap(document.contents) || document.contents.items.length > 0) return document.toString();
  return document.commentBefore ? `${document.commentBefore.replaceAll(/^/gm, '#')}\n` : '';
}

async function configText(places: Places): Promise<string> {
  try {
    return await readText(places.configFile, { maxBytes: MAX_BYTES, what: 'configuration file' });
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return '';
    throw error;
  }
}
