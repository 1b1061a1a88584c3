import type { AppConfig } from '../config/app-config.ts';
import type { Source } from '../runtime/runtime.ts';
import type { Field } from '@skep/core/settings/field.ts';
import { builtinProfile } from '../permissions/profile.ts';
import { runSettings, type RunValues } from '../settings/run-settings.ts';
import { addressIn } from '../settings/transport.ts';
import { namesPythonIndex } from '../runtime/pypi/pip-settings.ts';
import { hasBuildAccess } from './build-access.ts';
import type { Surroundings } from './plan.ts';
import type { Target } from './resolve-target.ts';

/**
 * What a supervisor that runs a command for another program leaves to that program (decision 0189). Outside the
 * supervisor nothing is handed over.
 */
type Where = Pick<Surroundings, 'env' | 'inside'>;

/** Flags that name a file or folder to be looked at, that keep the command attached, or that show what only this process knows. */
export function handOverByFlags(values: RunValues, { inside, env }: Where): void {
  if (!inside) return;
  const { foreground, learn, explain, debug, host, permissionProfile = 'none', runtime = '' } = values;
  if (foreground || learn || explain || debug === true) inside.handOver('it shows what happens');
  if (runtime !== (env['SKEP_RUNTIME'] ?? '')) inside.handOver('--runtime names another than its own');
  // Names are looked up by threads that everything in the process shares.
  if (addressIn(host) === undefined && host !== 'localhost') inside.handOver('--host is a name');
  const given: Readonly<Record<string, unknown>> = values;
  const rows: readonly Field[] = runSettings;
  const files = rows.filter(({ kind }) => kind === 'path' || kind === 'json-file');
  const file = files.find(({ name }) => given[name] !== undefined);
  if (file) inside.handOver(`${file.flag ?? file.name} names a file`);
  if ((values.webhookConfig ?? []).length > 0) inside.handOver('--webhook-config names a file');
  // Looked at by the same threads, and what lies on a machine that does not answer holds them for good.
  if ((values.volume ?? []).length > 0) inside.handOver('--volume names a folder');
  if (!builtinProfile(permissionProfile)) inside.handOver('--permission-profile names a file');
}

/** Catalogues of others are read where they can hold up nobody else. */
export function handOverByCatalogue(target: Target, config: AppConfig, { inside }: Where): void {
  const { registryApiUrl, registryUrl, localRegistryPath } = config;
  const others = [registryApiUrl, registryUrl, localRegistryPath].some((place) => place !== undefined);
  if (inside && target.kind === 'name' && others) inside.handOver('it is looked up in a catalogue');
}

/** Where a package comes from is part of what it is, and no supervisor keeps what says so: it may sign in. */
export function handOverByIndex(source: Source, { env, inside }: Where): void {
  const python = source.kind === 'package' && source.ecosystem === 'pypi';
  if (inside && python && namesPythonIndex(env)) inside.handOver('a variable names its index');
}

/** What builds are given may come from the environment of the command, and the person may be asked for a password. */
export function handOverByBuild(source: Source, config: AppConfig, { inside }: Where): void {
  if (inside && source.kind === 'package' && hasBuildAccess(config))
    inside.handOver('builds are given settings');
}
