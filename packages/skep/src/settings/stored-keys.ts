import { VARIABLE_NAME } from '@skep/core/catalog/variable-name.ts';
import type { Field } from '@skep/core/settings/field.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { auditShape, type AuditConfig } from '@skep/proxy/steps/audit/settings.ts';
import { hasLogin, parseHttpUrl } from '@skep/core/fetch/http-url.ts';
import { profileShape, type PermissionProfile } from '../permissions/profile.ts';
import { HARDENINGS } from '../permissions/hardening.ts';
import { isDataPath, MAX_DATA_PATHS } from '../permissions/data-paths.ts';
import { ECOSYSTEMS } from '../protocol/reference.ts';
import { runtimeEnvShape } from '../protocol/runtime-env.ts';
import { overridesShape, type ToolOverrides } from './tools.ts';
import { rateLimitsShape, type RateLimits } from './rate-limit.ts';
import { sessionRedisShape, type StoredSessionRedis } from './session-redis.ts';
import { webhooksShape, type StoredWebhook } from './webhooks.ts';

type KeyOnly = Pick<Field, 'stored' | 'local' | 'notYet' | 'harmless' | 'brief'>;
type KeyRow<Name, Facts> = Facts & {
  readonly name: Name;
  readonly key: Name;
  readonly kind: 'json';
  readonly group: string;
};

/** Rows of what a stored run configuration has and no flag or variable gives. */
function keysOf<const Keys extends Readonly<Record<string, KeyOnly>>>(group: string, keys: Keys) {
  const rows = Object.entries(keys).map(([key, facts]) => ({
    ...facts,
    name: key,
    key,
    kind: 'json',
    group,
  }));
  return rows as unknown as readonly { readonly [Key in keyof Keys]: KeyRow<Key, Keys[Key]> }[keyof Keys][];
}

const noNothing: PermissionProfile = {};
const ORIGIN = /^https?:\/\/[^/\s@]+$/i;

export const SCHEMA_VERSION = 'v0.1.0';
const schemaVersion: shape.Shape<string> = (value, fail) => {
  const version = shape.withDefault(shape.text, '')(value, fail) || SCHEMA_VERSION;
  return version.startsWith('v0.') ? version : fail('written by a newer release');
};

const imageName: shape.Shape<string> = (value, fail) => shape.noNul(value, fail) || fail('is empty');

const remoteUrl = shape.optional((value, fail) => {
  const text = shape.textThat((one) => parseHttpUrl(one) !== undefined, 'is no http or https URL')(
    value,
    fail,
  );
  return hasLogin(new URL(text)) ? fail('holds a login; give what the server wants as a header') : text;
});

const packageSource = shape.exactly({
  kind: shape.oneOf('package'),
  ecosystem: shape.oneOf(...ECOSYSTEMS),
  name: imageName,
  version: shape.optional(shape.noNul),
  directory: shape.optional(shape.noNul),
});

const anyDataPaths = shape.listOf(shape.textThat(isDataPath, 'not a path for data'));
const dataPaths: shape.Shape<readonly string[]> = (value, fail) => {
  const paths = anyDataPaths(value, fail);
  return paths.length > MAX_DATA_PATHS ? fail(`more than ${MAX_DATA_PATHS}`) : paths;
};

/** What a run decides, kept with the workload so that a start does the same again. */
export const decidedKeys = keysOf('Kept with a workload', {
  schema_version: { stored: schemaVersion, brief: 'Version of the format' },
  image: { stored: imageName, brief: 'Prepared reference: an image, or the id of a package tree' },
  package: {
    stored: shape.optional(packageSource),
    brief: 'What the image was made from, where that is a package',
  },
  package_version: {
    stored: shape.optional(shape.text),
    brief: 'Version of the package that the image was made from',
  },
  image_is_ours: {
    stored: shape.withDefault(shape.bool, false),
    brief: 'Skep made the image and may remove it with the workload',
  },
  'runtime_config.runtime_env': {
    stored: shape.optional(runtimeEnvShape),
    brief: 'Variables of the server of a package, unless others are given',
  },
  registry_url: { stored: shape.optional(shape.text), brief: 'Catalogue file that the server came from' },
  registry_api_url: { stored: shape.optional(shape.text), brief: 'Registry that the server came from' },
  registry_server_name: {
    stored: shape.optional(shape.text),
    brief: 'Full name of the server in its catalogue',
  },
  remote_url: {
    // Other tools write an empty text for "not given".
    stored: (value, fail) => (value === '' ? undefined : remoteUrl(value, fail)),
    brief: 'Address of a server elsewhere',
  },
  remote_allow_private_ip: {
    stored: shape.optional(shape.bool),
    brief: 'Its person knows that the address is not public',
  },
  cmd_args: {
    stored: shape.orEmpty(shape.listOf(shape.noNul), []),
    brief: 'Arguments of the server, given after --',
  },
  allowed_origins: {
    stored: shape.optional(shape.listOf(shape.textThat((origin) => ORIGIN.test(origin), 'is not an origin'))),
    brief: 'Web origins that may call beside the own one; their hosts are names of the proxy',
  },
  stateless: {
    stored: shape.nullish(shape.bool),
    brief: 'The server speaks HTTP without sessions, and takes POST alone',
  },
  strict_protocol_validation: {
    stored: shape.nullish(shape.bool),
    brief: 'The proxy refuses unknown protocol versions, whatever the server does',
  },
  permission_profile: {
    stored: shape.orEmpty(profileShape, noNothing),
    brief: 'What the server may do, with volumes merged in and paths absolute',
  },
  data_paths: {
    stored: shape.optional(dataPaths),
    brief: 'Paths inside whose content stays when the workload is removed',
  },
  secret_env: {
    stored: shape.orEmpty(
      shape.listOf(shape.textThat((name) => VARIABLE_NAME.test(name), 'not a variable name')),
      [],
    ),
    brief: 'Variables whose values are secrets: never exported or listed',
  },
  'oidc_config.required_scopes': {
    stored: shape.optional(shape.listOf(shape.noNul)),
    brief: 'Scopes without which a token is refused',
  },
  'token_exchange_config.header_strategy': {
    stored: shape.optional(shape.oneOf('', 'replace', 'custom')),
    brief: 'Whether the new token goes into Authorization or a header of its own',
  },
  'token_exchange_config.resource': {
    stored: shape.optional(shape.noNul),
    brief: 'Resource that the new token is for (RFC 8707)',
  },
  'remote_auth_config.issuer_found': {
    stored: shape.optional(shape.bool),
    brief: 'The server named the issuer, when somebody first signed in',
  },
  'remote_auth_config.scope_param_name': {
    stored: shape.optional(shape.noNul),
    brief: 'What the authorization server calls the parameter scope',
  },
  'remote_auth_config.oauth_params': {
    stored: shape.optional(shape.recordOf(shape.noNul)),
    brief: 'Further parameters of the address that a person signs in at',
  },
  tools_override: {
    stored: shape.orEmpty<ToolOverrides | undefined>(overridesShape, undefined),
    brief: 'Other names and descriptions of tools',
  },
  authz_config: {
    stored: shape.orEmpty<Readonly<Record<string, unknown>> | undefined>(
      shape.recordOf(shape.anything),
      undefined,
    ),
    brief: 'Who may use what: policies, or who decides',
  },
  audit_config: {
    stored: shape.orEmpty<AuditConfig | undefined>(auditShape, undefined),
    brief: 'What is written down of calls; auditing is on where it is there',
  },
  'telemetry_config.serviceVersion': {
    stored: shape.nullish(shape.text),
    brief: 'Service version in traces and metrics; that of Skep where it is not given',
  },
  'telemetry_config.caCertPath': {
    stored: shape.nullish(shape.noNul),
    brief: 'Authorities (PEM) of an OTLP endpoint over HTTPS',
  },
  telemetry_environment: {
    stored: shape.optional(shape.recordOf(shape.noNul)),
    local: true,
    brief: 'What the variables of telemetry_config.environmentVariables held when it was run',
  },
  rate_limit_config: {
    stored: shape.orEmpty<RateLimits | undefined>(rateLimitsShape, undefined),
    brief: 'How often tools may be called',
  },
  'scaling_config.session_redis': {
    stored: shape.orEmpty<StoredSessionRedis | undefined>(sessionRedisShape, undefined),
    brief: 'Where replicas of a proxy share sessions',
  },
  validating_webhooks: {
    stored: shape.orEmpty<readonly StoredWebhook[] | undefined>(webhooksShape, undefined),
    brief: 'Webhooks that may refuse a call',
  },
  mutating_webhooks: {
    stored: shape.orEmpty<readonly StoredWebhook[] | undefined>(webhooksShape, undefined),
    brief: 'Webhooks that may change a call',
  },
  hardening: {
    stored: shape.optional(shape.oneOf(...HARDENINGS)),
    local: true,
    brief: 'How hard its container is held: what the server last started with, or is to try',
  },
  k8s_pod_template_patch: {
    // Other tools write an empty text for "not given".
    stored: (value, fail) => shape.optional(shape.noNul)(value, fail) || undefined,
    brief: 'JSON of a part of a pod template, merged into the pod of a cluster',
  },
  mount_sources: {
    stored: shape.optional(shape.recordOf(shape.text)),
    local: true,
    brief: 'Where the sources of the mounts led to when they were granted',
  },
});

/** Keys of the format that this release does not act on, most of them guards. */
export const laterKeys = keysOf('Keys of imported files', {
  'remote_auth_config.headers': {
    notYet: true,
    harmless: true,
    brief: 'Headers that another catalogue names',
  },
  'remote_auth_config.env_vars': {
    notYet: true,
    harmless: true,
    brief: 'Variables that another catalogue names',
  },
  env_file_dir: { notYet: true, brief: 'Directory of variables that is read at each start' },
  upstream_swap_config: { notYet: true, brief: 'Token that is put in place of the client’s' },
  aws_sts_config: { notYet: true, brief: 'Credentials of AWS for the server' },
  middleware_configs: { notYet: true, brief: 'Steps of the proxy' },
  additional_middleware_configs: { notYet: true, brief: 'Further steps of the proxy' },
  embedded_auth_server_config: { notYet: true, brief: 'Authorization server within the proxy' },
  rate_limit_namespace: { notYet: true, harmless: true, brief: 'Namespace of rate limits' },
  mcpserver_generation: { notYet: true, harmless: true, brief: 'Generation of a Kubernetes resource' },
  'scaling_config.backend_replicas': {
    notYet: true,
    harmless: true,
    brief: 'Replicas, where something else starts them',
  },
});
