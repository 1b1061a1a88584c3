import { isDeepStrictEqual } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readRules } from '@skep/proxy/steps/authz/rules.ts';
import { stringify } from 'yaml';
import { limitsOf } from '../permissions/limits.ts';
import {
  builtinProfile,
  profileMounts,
  profileVolumes,
  type PermissionProfile,
} from '../permissions/profile.ts';
import { isOfProxy, parseReference } from '../secrets/reference.ts';
import { isMeasured } from './telemetry.ts';
import { DEFAULT_GROUP } from '../settings/group-name.ts';
import type { RunConfig } from './run-config.ts';
import { toolsOf } from './tools.ts';
import { allOf } from './webhooks.ts';

/** A workload as resources of a cluster, and what a person has to know of it, one sentence a line. */
export interface KubernetesExport {
  readonly text: string;
  readonly notes: readonly string[];
}

const MAX_NAME = 63;
const BUILTIN_PROFILES = ['none', 'network'];
const PROFILE_KEY = 'profile.json';
const PROFILE_SUFFIX = '-profile';
/** What a profile without a network allows. */
const NOTHING = builtinProfile('none')?.network;

/**
 * Writes a workload as YAML of the resource `MCPServer` (`toolhive.stacklok.dev/v1beta1`), with its permission profile in
 * a `ConfigMap` where no built-in one says the same. Values of secrets are not in it: it refers to `Secret`s, and the
 * notes say how they are made. Fails with `run/no-image` for what no cluster can pull.
 */
export function toKubernetes(config: RunConfig): KubernetesExport {
  requireLocal(config);
  requireImage(config);
  const name = dnsName(config.name);
  const secrets = secretsOf(config, name);
  const profile = profileOf(config.permission_profile, name);
  const mounts = profileMounts(config.permission_profile, '/');
  const server = {
    apiVersion: 'toolhive.stacklok.dev/v1beta1',
    kind: 'MCPServer',
    metadata: { name, ...some('labels', config.container_labels) },
    spec: {
      image: config.image,
      transport: config.transport,
      ...(config.transport === 'stdio'
        ? { proxyMode: config.proxy_mode }
        : some('mcpPort', config.target_port)),
      ...some('proxyPort', config.port),
      ...some('args', config.cmd_args),
      ...some('env', plainVariables(config)),
      ...some(
        'secrets',
        secrets.map(({ secret, target }) => ({ name: secret, key: target, targetEnvName: target })),
      ),
      ...some(
        'volumes',
        mounts.map(({ source, target, readOnly }, index) => ({
          name: `volume-${index}`,
          hostPath: source,
          mountPath: target,
          readOnly,
        })),
      ),
      ...some('resources', resourcesOf(config)),
      permissionProfile: profile.reference,
      ...(config.group === DEFAULT_GROUP ? {} : { groupRef: { name: dnsName(config.group) } }),
      ...(config.trust_proxy_headers ? { trustProxyHeaders: true } : {}),
      ...some('endpointPrefix', config.endpoint_prefix || undefined),
      ...some('authzConfig', policiesOf(config)),
      ...(config.audit_config === undefined ? {} : { audit: { enabled: true } }),
    },
  };
  const documents = [...profile.documents, server].map((document) => stringify(document, { lineWidth: 0 }));
  const notes = [
    ...secrets.map(
      ({ secret, target }) =>
        `It reads ${target} from a secret: kubectl create secret generic ${secret} --from-literal=${target}=…`,
    ),
    ...(mounts.length === 0 ? [] : ['Its volumes are directories of whichever node it is started on.']),
    ...(config.group === DEFAULT_GROUP
      ? []
      : [`It belongs to the MCPGroup ${dnsName(config.group)}, which has to exist.`]),
    ...leftOut(config),
  ];
  return { text: documents.join('---\n'), notes };
}

/** An empty list or object, and what is absent, is left out. */
function some<Key extends string, Value>(key: Key, value: Value): { readonly [K in Key]?: Value } {
  const isEmpty = value === undefined || (typeof value === 'object' && Object.keys(value ?? {}).length === 0);
  return (isEmpty ? {} : { [key]: value }) as { readonly [K in Key]?: Value };
}

function requireLocal({ name, remote_url: elsewhere }: RunConfig): void {
  if (elsewhere === undefined) return;
  throw new SkepError('run/no-image', {
    message: `"${name}" is a server elsewhere, and a cluster would run nothing of it`,
    hint: 'connect its clients to the address of the server',
  });
}

function requireImage({ name, package: made }: RunConfig): void {
  if (made === undefined) return;
  throw new SkepError('run/no-image', {
    message: `${name} was made from the package ${made.name} on this machine, where no cluster can pull it`,
  });
}

/** RFC 1123, section 2.1: what a cluster takes as a name. */
function dnsName(name: string): string {
  const allowed = name.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-');
  return allowed.replace(/^-+/, '').slice(0, MAX_NAME).replace(/-+$/, '') || 'server';
}

interface SecretOfCluster {
  readonly secret: string;
  readonly target: string;
}

/** A secret of the cluster for each variable: the resource takes every name of a secret once. */
function secretsOf({ secret_env, secrets = [] }: RunConfig, name: string): readonly SecretOfCluster[] {
  const targets = new Set([...secret_env, ...secrets.map((text) => parseReference(text).target)]);
  const taken = new Set<string>();
  for (const target of targets) if (isOfProxy(target)) targets.delete(target);
  return [...targets].toSorted().map((target) => {
    const wanted = `${name}-${dnsName(target)}`;
    // Variables may differ in what a name of a cluster cannot tell.
    const secret = taken.has(wanted) ? `${wanted}-${taken.size}` : wanted;
    taken.add(secret);
    return { target, secret };
  });
}

function plainVariables({ env_vars, secret_env }: RunConfig): readonly { name: string; value: string }[] {
  return Object.entries(env_vars)
    .filter(([name]) => !secret_env.includes(name) && !isOfProxy(name))
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => ({ name, value }));
}

/** A built-in profile where it says the same; the volumes stand in the server itself. */
function profileOf({ read: _read, write: _write, ...profile }: PermissionProfile, name: string) {
  const same = BUILTIN_PROFILES.find((builtin) =>
    isDeepStrictEqual(builtinProfile(builtin)?.network, profile.network ?? NOTHING),
  );
  if (same !== undefined && profile.privileged !== true)
    return { documents: [], reference: { type: 'builtin', name: same } };
  const map = `${name.slice(0, MAX_NAME - PROFILE_SUFFIX.length)}${PROFILE_SUFFIX}`;
  const document = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: map },
    data: { [PROFILE_KEY]: `${JSON.stringify(profile, null, 2)}\n` },
  };
  return { documents: [document], reference: { type: 'configmap', name: map, key: PROFILE_KEY } };
}

/** Only what was given: what a server may use by default is the cluster's to say. */
function resourcesOf(config: RunConfig) {
  const { memory, cpus } = limitsOf(config);
  const limits = {
    ...(config.memory === undefined || memory === 0 ? {} : { memory: `${memory}` }),
    ...(config.cpus === undefined || cpus === 0 ? {} : { cpu: `${cpus}` }),
  };
  return some('limits', limits);
}

/** Cedar policies; undefined for what has no field there. Fails as `readRules`. */
function policiesOf({ authz_config: document }: RunConfig) {
  if (document === undefined) return undefined;
  const rules = readRules(document);
  if (rules.type !== 'cedarv1' || rules.multiValued.length > 0) return undefined;
  const { policies, entities, groupClaim, roleClaim, groupType } = rules;
  return {
    type: 'inline',
    ...some('groupClaimName', groupClaim),
    ...some('roleClaimName', roleClaim),
    // Who reads it has another one by default.
    groupEntityType: groupType,
    inline: { policies, ...some('entitiesJson', entities.length > 0 ? JSON.stringify(entities) : undefined) },
  };
}

/** What holds for the workload here and has no field there. */
function leftOut(config: RunConfig): readonly string[] {
  const given = [
    ...(config.publish?.length ? ['--publish'] : []),
    ...(config.isolate_network === true ? ['--isolate-network'] : []),
    ...(config.pids_limit === undefined ? [] : ['--pids-limit']),
    ...(config.disk === undefined ? [] : ['--disk']),
    ...(config.read_only === true ? ['--read-only'] : []),
    ...(config.oidc_config === undefined ? [] : ['signing in (--oidc-…), so everybody may call it']),
    ...(toolsOf(config) === undefined ? [] : ['--tools and --tools-override, so clients see all tools']),
    ...(config.authz_config === undefined || policiesOf(config)
      ? []
      : ['--authz-config, so everybody may use everything']),
    ...(Object.keys(config.audit_config ?? {}).length === 0
      ? []
      : ['what --audit-config says beside that it is on']),
    ...(config.telemetry_config && isMeasured(config.telemetry_config) ? ['telemetry'] : []),
    ...(config.rate_limit_config === undefined ? [] : ['rate limits']),
    ...(allOf(config).length === 0 ? [] : ['--webhook-config, so nobody is asked about calls']),
    ...(config.token_exchange_config === undefined ? [] : ['the exchange of tokens (--token-exchange-…)']),
    ...(config.allowed_origins?.length ? ['allowed_origins'] : []),
    ...(profileVolumes(config.permission_profile).length === 0 ? [] : ['volumes that servers share']),
    ...(config.data_paths?.length ? ['the data that is kept over a removal'] : []),
  ];
  return given.length === 0
    ? []
    : [`Not in it, because the resource has no field for it: ${given.join(', ')}.`];
}
