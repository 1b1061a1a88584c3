import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Keys ToolHive writes under another name (spec run-workload §7.1). */
const ALIASES: Readonly<Record<string, string>> = {
  thv_ca_bundle: 'skep_ca_bundle',
  allow_docker_gateway: 'allow_runtime_gateway',
};

/**
 * Keys that guard something. Running the workload without what they ask for would fail open, so a file that uses one
 * is refused until Skep implements it.
 */
const REFUSED: readonly string[] = [
  'remote_url',
  'remote_auth_config',
  'secrets',
  'isolate_network',
  'endpoint_prefix',
  'env_file_dir',
  'tools_filter',
  'tools_override',
  'header_forward',
  'jwks_auth_token_file',
  'oidc_config',
  'token_exchange_config',
  'upstream_swap_config',
  'aws_sts_config',
  'authz_config',
  'authz_config_path',
  'audit_config',
  'audit_config_path',
  'validating_webhooks',
  'mutating_webhooks',
  'embedded_auth_server_config',
  'rate_limit_config',
];

/** Keys without effect yet, whose absence harms nobody: kept, and said. */
const NO_EFFECT: readonly string[] = ['telemetry_config', 'session_ttl'];

export interface Imported {
  readonly value: unknown;
  /** Keys that are kept but do nothing in this release. */
  readonly noEffect: readonly string[];
}

/**
 * Makes an exported document of ToolHive or of Skep readable for `decodeRunConfig`: aliases renamed, labels of the
 * other tool dropped, members that protect something refused with `usage/not-available`.
 */
export function fromToolhive(value: unknown, where: string): Imported {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { value, noEffect: [] };
  const members = Object.entries(value).map(([key, member]): [string, unknown] => [
    Object.hasOwn(ALIASES, key) ? (ALIASES[key] ?? key) : key,
    Object.hasOwn(REWRITTEN, key) ? REWRITTEN[key]?.(member) : member,
  ]);
  const refused = members.find(([key, member]) => REFUSED.includes(key) && !isEmpty(member));
  if (refused) {
    throw new SkepError('usage/not-available', {
      message: `${where} uses "${refused[0]}", which is not available yet`,
      hint: 'remove the key if the workload may run without it',
    });
  }
  const noEffect = members.filter(([key, member]) => NO_EFFECT.includes(key) && !isEmpty(member));
  return { value: Object.fromEntries(members), noEffect: noEffect.map(([key]) => key) };
}

/** Labels that state facts about one running workload; they are written anew. */
export function isStandardLabel(key: string): boolean {
  return key === 'toolhive' || key.startsWith('toolhive-') || key.startsWith('skep.');
}

const REWRITTEN: Readonly<Record<string, (member: unknown) => unknown>> = {
  container_labels: withoutStandardLabels,
  ignore_config: withSnakeCase,
};

/** ToolHive writes `LoadGlobal` and `PrintOverlays`. */
function withSnakeCase(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const snake = (key: string): string => key.replaceAll(/(?<=.)[A-Z]/g, '_$&').toLowerCase();
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [snake(key), member]));
}

function withoutStandardLabels(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !isStandardLabel(key)));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
