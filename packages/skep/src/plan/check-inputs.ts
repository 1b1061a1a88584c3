import { lookup } from 'node:dns/promises';
import { isIPv4 } from 'node:net';
import { resolve } from 'node:path';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkReferences, type SecretReference } from '../secrets/reference.ts';
import { checkSources, isMount, parseVolume, type Declared } from '../permissions/mounts.ts';
import { loadProfile, type PermissionProfile } from '../permissions/profile.ts';
import { limitsOf } from '../permissions/limits.ts';
import { parseConfinedUser } from '../permissions/confined-user-name.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { requireGroup, RULE } from '../run-config/group-file.ts';
import { checkLabels } from '../run-config/labels.ts';
import { addressIn, isEndpointPrefix, isPortMapping, isTargetHost } from '../settings/transport.ts';
import { checkRecipeOptions } from '../protocol/build-recipe.ts';
import type { RunValues } from '../settings/run-settings.ts';
import { readEnvDirectory, readEnvFile, type EnvFile } from './env-files.ts';
import { readEnvFlags } from './merge-env.ts';
import type { Surroundings } from './plan.ts';
import { isGroupName } from '../settings/group-name.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';

/** The flags of `skep run`, checked as far as can be done without network, engine and questions. */
export interface CheckedInputs {
  readonly name: string | undefined;
  /** IP address the proxy listens on, without brackets. */
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: {
    /** Of `--env-file` and then `--env-file-dir`; later ones win. */
    readonly files: readonly EnvFile[];
    readonly flags: Readonly<Record<string, string>>;
  };
  /** `--skep-ca-bundle`, absolute; read, and found to be one. */
  readonly caBundle: string | undefined;
  /** `--secret`. */
  readonly secrets: readonly SecretReference[];
  readonly volumes: readonly Declared[];
  /** `--permission-profile`, read. */
  readonly profile: PermissionProfile | undefined;
}

/** Everything that can be wrong with the flags is found here, before anything is downloaded, asked or made. */
export async function checkInputs(
  values: RunValues,
  { cwd, env, places, terminal }: Pick<Surroundings, 'cwd' | 'env' | 'places' | 'terminal'>,
): Promise<CheckedInputs> {
  await checkGroup(values.group, places);
  for (const item of values.publish ?? []) {
    if (isPortMapping(item)) continue;
    const hint = 'write hostPort:containerPort, or containerPort alone, with ports from 1 to 65535';
    throw invalid(`invalid port specification: "${item}"`, hint);
  }
  if (!isTargetHost(values.targetHost))
    throw invalid(`invalid target host: "${values.targetHost}"`, 'give a host name or an IPv4 address');
  // Scripts write an empty text for what they have no value for.
  const { endpointPrefix: prefix = '' } = values;
  if (prefix !== '' && !isEndpointPrefix(prefix))
    throw invalid(`invalid endpoint prefix: "${prefix}"`, 'give a path that begins with "/"');
  const {
    runtimeImage: baseImage,
    runtimeAddPackage: addPackages = [],
    buildWith,
    permissionProfile,
  } = values;
  checkRecipeOptions({
    addPackages,
    ...(baseImage === undefined ? {} : { baseImage }),
    ...(buildWith === undefined ? {} : { buildWith }),
  });
  if (values.sandboxUser !== undefined) parseConfinedUser(values.sandboxUser);
  checkLimits(values);
  // For what is wrong with it; a build reads it when it comes to that.
  if (values.caCert !== undefined) await readCaBundle(resolve(cwd, values.caCert));
  const caBundle = values.skepCaBundle ? resolve(cwd, values.skepCaBundle) : undefined;
  if (caBundle !== undefined) await readCaBundle(caBundle);
  const host = await addressOf(values.host);
  checkPublished({ host, publish: values.publish ?? [] });
  return {
    caBundle,
    name: values.name === undefined ? undefined : checkWorkloadName(values.name.replaceAll('/', '-')),
    host,
    labels: checkLabels(values.label ?? {}),
    env: { files: await readEnvFiles(values, { cwd, terminal }), flags: readEnvFlags(values.env ?? [], env) },
    secrets: checkReferences(values.secret ?? []),
    volumes: await readVolumes(values.volume ?? [], cwd),
    profile: permissionProfile === undefined ? undefined : await loadProfile(permissionProfile, cwd),
  };
}

async function readVolumes(given: readonly string[], cwd: string): Promise<readonly Declared[]> {
  const volumes = given.map((item) => parseVolume(item, cwd));
  await checkSources(volumes.filter(isMount));
  return volumes;
}

function checkLimits({ memory, cpus, pidsLimit, disk }: RunValues): void {
  limitsOf({ memory, cpus, pids_limit: pidsLimit, disk });
}

function invalid(message: string, hint: string, cause?: unknown): SkepError {
  return new SkepError('usage/invalid-value', { message, hint, cause });
}

async function checkGroup(group: string, places: Surroundings['places']): Promise<void> {
  if (!isGroupName(group)) throw invalid(`invalid group name in --group: ${JSON.stringify(group)}`, RULE);
  await requireGroup(places, group);
}

/** Fails with `usage/invalid-value` where ports of a container would be published at an address that runtimes cannot forward from. */
export function checkPublished({ host, publish }: Pick<RunConfig, 'host' | 'publish'>): void {
  if (publish.length === 0 || isIPv4(host)) return;
  throw invalid(`ports cannot be published at "${host}"`, 'give an IPv4 address as --host, or publish none');
}

/** An address as URLs have it, without brackets, or a host name's first of IPv4 (docs/behaviour/run.md#ports). */
async function addressOf(host: string): Promise<string> {
  const given = addressIn(host);
  if (given !== undefined) return given;
  const refused = (cause?: unknown): SkepError =>
    invalid(`invalid host: "${host}"`, 'give an IP address, or a name that has one of IPv4', cause);
  if (host === '' || host.includes(':')) throw refused();
  try {
    return (await lookup(host, { family: 4 })).address;
  } catch (error) {
    throw refused(error);
  }
}

async function readEnvFiles(
  { envFile, envFileDir }: RunValues,
  around: Pick<Surroundings, 'cwd' | 'terminal'>,
): Promise<readonly EnvFile[]> {
  const file = envFile === undefined ? [] : [await readEnvFile(envFile, around.cwd)];
  return envFileDir === undefined ? file : [...file, ...(await readEnvDirectory(envFileDir, around))];
}
