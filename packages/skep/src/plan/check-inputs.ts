import { lookup } from 'node:dns/promises';
import { stat } from 'node:fs/promises';
import { isIPv4, isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { parseVolume } from '../permissions/mount-declaration.ts';
import { loadProfile, type PermissionProfile } from '../permissions/profile.ts';
import type { Mount } from '../permissions/mount-declaration.ts';
import { parseConfinedUser } from '../permissions/confined-user-name.ts';
import { isLabel } from '../run-config/labels.ts';
import { isPortMapping, isTargetHost } from '../settings/transport.ts';
import { checkRecipeOptions } from '../protocol/build-recipe.ts';
import type { RunValues } from '../settings/run-settings.ts';
import type { Surroundings } from './plan.ts';
import { parseEnvFile, readEnvFlags } from './merge-env.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';

/** The flags of `skep run`, checked as far as can be done without network, engine and questions. */
export interface CheckedInputs {
  readonly name: string | undefined;
  /** IPv4 address the proxy listens on. */
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: {
    readonly file: Readonly<Record<string, string>>;
    readonly flags: Readonly<Record<string, string>>;
  };
  readonly volumes: readonly Mount[];
  /** `--permission-profile`, read. */
  readonly profile: PermissionProfile | undefined;
  /** `--ca-cert`, read. */
  readonly caCert: string | undefined;
}

const MAX_ENV_FILE_BYTES = 1024 * 1024;

/** Everything that can be wrong with the flags is found here, before anything is downloaded, asked or made. */
export async function checkInputs(
  values: RunValues,
  { cwd, env }: Pick<Surroundings, 'cwd' | 'env'>,
): Promise<CheckedInputs> {
  checkGroup(values.group);
  for (const item of values.publish ?? []) checkPublish(item);
  checkTargetHost(values.targetHost);
  const { runtimeImage: baseImage, runtimeAddPackage: addPackages = [] } = values;
  checkRecipeOptions({ addPackages, ...(baseImage === undefined ? {} : { baseImage }) });
  if (values.sandboxUser !== undefined) parseConfinedUser(values.sandboxUser);
  return {
    name: values.name === undefined ? undefined : checkWorkloadName(values.name.replaceAll('/', '-')),
    host: await toIPv4(values.host),
    labels: checkLabels(values.label ?? {}),
    env: { file: await readEnvFile(values.envFile, cwd), flags: readEnvFlags(values.env ?? [], env) },
    volumes: await Promise.all((values.volume ?? []).map((item) => checkVolume(item, cwd))),
    profile:
      values.permissionProfile === undefined ? undefined : await loadProfileAt(values.permissionProfile, cwd),
    caCert:
      values.caCert === undefined ? undefined : (await readCaBundle(resolve(cwd, values.caCert))).join('\n'),
  };
}

function checkGroup(group: string): void {
  if (!/^[a-z0-9_-]+(?: [a-z0-9_-]+)*$/.test(group)) {
    throw new SkepError('usage/invalid-value', {
      message: `invalid group name in --group: ${JSON.stringify(group)}`,
      hint: 'use lower-case letters, digits, _ and -, with single spaces between words',
    });
  }
  if (group !== 'default') {
    throw new SkepError('usage/invalid-value', {
      message: `group '${group}' does not exist`,
      hint: 'groups other than "default" are not available yet',
    });
  }
}

function checkPublish(item: string): void {
  if (isPortMapping(item)) return;
  throw new SkepError('usage/invalid-value', {
    message: `invalid port specification: "${item}"`,
    hint: 'write hostPort:containerPort, or containerPort alone, with ports from 1 to 65535',
  });
}

function checkTargetHost(host: string): void {
  if (isTargetHost(host)) return;
  throw new SkepError('usage/invalid-value', {
    message: `invalid target host: "${host}"`,
    hint: 'give a host name or an IPv4 address',
  });
}

/** An IPv4 address, or a host name's first one (docs/behaviour/run.md#ports). */
async function toIPv4(host: string): Promise<string> {
  if (isIPv4(host)) return host;
  const invalid = (cause?: unknown): SkepError =>
    new SkepError('usage/invalid-value', {
      message: `invalid host: "${host}"`,
      hint: 'give an IPv4 address, or a name that has one',
      ...(cause === undefined ? {} : { cause }),
    });
  if (isIPv6(host) || host === '') throw invalid();
  try {
    return (await lookup(host, { family: 4 })).address;
  } catch (error) {
    throw invalid(error);
  }
}

function checkLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const trimmed = Object.entries(labels).map(([key, value]) => [key.trim(), value.trim()] as const);
  for (const [key, value] of trimmed) {
    if (isLabel(key, value)) continue;
    throw new SkepError('usage/invalid-value', {
      message: `invalid label "${key}=${value}"`,
      hint: 'keys and values have up to 63 letters, digits, dots, dashes and underscores; skep. is reserved',
    });
  }
  return Object.fromEntries(trimmed);
}

async function readEnvFile(path: string | undefined, cwd: string): Promise<Readonly<Record<string, string>>> {
  if (path === undefined) return {};
  return parseEnvFile(
    await readText(resolve(cwd, path), { maxBytes: MAX_ENV_FILE_BYTES, what: 'env file' }),
    path,
  );
}

async function checkVolume(item: string, cwd: string): Promise<Mount> {
  const mount = parseVolume(item, cwd);
  try {
    await stat(mount.source);
    return mount;
  } catch (error) {
    const missing = errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR';
    throw new SkepError('run/invalid-volume', {
      message: missing
        ? `volume source path does not exist: "${mount.source}"`
        : `failed to access volume source path "${mount.source}"`,
      hint: missing ? 'create it first, or correct the path' : 'check its permissions',
      cause: error,
    });
  }
}

function loadProfileAt(nameOrPath: string, cwd: string): Promise<PermissionProfile> {
  // A built-in name is no path, whatever lies in the directory.
  return loadProfile(/[/.]/.test(nameOrPath) ? resolve(cwd, nameOrPath) : nameOrPath, cwd);
}
