import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import { USED_KEYS } from './decode.ts';
import { withoutFacts } from './fact-labels.ts';
import { isNothing } from './is-nothing.ts';
import { stepsBeyond } from './steps-anyway.ts';

/** Keys ToolHive writes under another name (spec run-workload §7.1). */
const ALIASES: Readonly<Record<string, string>> = {
  thv_ca_bundle: 'skep_ca_bundle',
  allow_docker_gateway: 'allow_runtime_gateway',
};

/** Derived from other keys, or a matter of the machine: written anew, whatever a file says. */
const WRITTEN_ANEW: ReadonlySet<string> = new Set([
  'base_name',
  'container_name',
  'runtime',
  'mount_sources',
]);

/** Keys without effect yet, or without effect here, whose absence harms nobody: kept, and said. */
const NO_EFFECT: ReadonlySet<string> = new Set([
  'telemetry_config',
  'session_ttl',
  'stateless',
  'strict_protocol_validation',
  'skep_ca_bundle',
  'allow_runtime_gateway',
  'ignore_config.print_overlays',
  'rate_limit_namespace',
  'k8s_pod_template_patch',
  'mcpserver_generation',
  'scaling_config',
]);

/**
 * Keys of the format that ask for what is not there yet, most of them a guard. This list only words the refusal: a key
 * that is in no list at all is refused as well.
 */
const LATER: ReadonlySet<string> = new Set([
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
  'middleware_configs',
  'additional_middleware_configs',
  'embedded_auth_server_config',
  'rate_limit_config',
  'runtime_config.build_with',
  'runtime_config.runtime_env',
]);

/** Keys whose members have rules of their own. */
const PARENTS: ReadonlySet<string> = new Set(['runtime_config', 'ignore_config']);

/** Those of their members that this release acts on. */
const USED_MEMBERS: ReadonlySet<string> = new Set([
  'runtime_config.builder_image',
  'runtime_config.additional_packages',
  'ignore_config.load_global',
]);

export interface Imported {
  readonly value: unknown;
  /** What the person should know about the file, a phrase each. */
  readonly warnings: readonly string[];
}

/**
 * Makes an exported document of ToolHive or of Skep readable for `decodeRunConfig`: aliases renamed, labels that state
 * facts about another workload dropped. Every key is acted on, named as without effect, or refused as `checkKeys` does.
 */
export function fromToolhive(value: unknown, where: string): Imported {
  if (!isRecord(value)) return { value, warnings: [] };
  const document = renamed(value);
  checkKeys(document, where);
  const idle = withMembers(document).filter(([key, member]) => NO_EFFECT.has(key) && !isNothing(member));
  const { labels, dropped } = withoutFacts(document['container_labels'], where);
  return {
    value: { ...document, ...(labels === undefined ? {} : { container_labels: labels }) },
    warnings: [
      ...(idle.length === 0 ? [] : [`kept, but without effect yet: ${idle.map(([key]) => key).join(', ')}`]),
      ...(dropped.length === 0 ? [] : [`labels of another tool were left out: ${dropped.join(', ')}`]),
    ],
  };
}

/**
 * A key may stand for a guard, so one that this release neither acts on nor knows to be harmless is refused (docs/decisions/0047): `usage/not-available` for what a later release will do, `run/invalid-config` for what no release knows.
 */
export function checkKeys(document: Readonly<Record<string, unknown>>, where: string): void {
  const asked = withMembers(document).filter(([key, member]) => !isMet(key, member));
  const unknown = asked.find(([key]) => !LATER.has(key));
  if (unknown) throw unknownKey(unknown[0], where);
  if (asked.length === 0) return;
  const several = asked.length > 1;
  throw new SkepError('usage/not-available', {
    message: `${where} uses ${asked.map(shown).join(', ')}, which ${several ? 'are' : 'is'} not available yet`,
    hint: `remove ${several ? 'the keys' : 'the key'} if the workload may run without`,
  });
}

/** The key, and of a list of steps those that are meant. */
function shown([key, member]: readonly [string, unknown]): string {
  return key === 'middleware_configs' ? `"${key}" (${stepsBeyond(member).join(', ')})` : `"${key}"`;
}

/** True when running without the key is what it asks for, or when the rest of the import acts on it. */
function isMet(key: string, member: unknown): boolean {
  if ([USED_KEYS, USED_MEMBERS, WRITTEN_ANEW, NO_EFFECT].some((keys) => keys.has(key))) return true;
  if (key === 'middleware_configs') return stepsBeyond(member).length === 0;
  return LATER.has(key) && isNothing(member);
}

function renamed(document: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const members = Object.entries(document).map(([key, member]) => [
    Object.hasOwn(ALIASES, key) ? ALIASES[key] : key,
    key === 'ignore_config' ? withSnakeCase(member) : member,
  ]);
  return Object.fromEntries(members) as Readonly<Record<string, unknown>>;
}

/** The document's keys and, dotted, those of the members that have rules of their own. */
function withMembers(document: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(document).flatMap(([key, member]): [string, unknown][] =>
    PARENTS.has(key) && isRecord(member)
      ? Object.entries(member).map(([inner, value]) => [`${key}.${inner}`, value])
      : [[key, member]],
  );
}

/** ToolHive writes `LoadGlobal` and `PrintOverlays`. */
function withSnakeCase(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const snake = (key: string): string => key.replaceAll(/(?<=.)[A-Z]/g, '_$&').toLowerCase();
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [snake(key), member]));
}

function unknownKey(key: string, where: string): SkepError {
  return new SkepError('run/invalid-config', {
    message: `${where} is not a run configuration: "${key}": unknown key`,
    hint: suggestion(key, [...USED_KEYS, ...NO_EFFECT, ...LATER], 'remove it, or correct its name'),
  });
}
