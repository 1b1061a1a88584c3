import type { Offer } from '@skep/core/command/command.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import type { Field } from '@skep/core/settings/field.ts';
import { appSettings } from '../config/app-config.ts';
import type { Context } from '../cli/context.ts';
import { allowedHosts } from '../permissions/allowed-hosts.ts';
import { isNamedVolume } from '../permissions/mounts.ts';
import { declaredMounts } from '../permissions/profile.ts';
import { findRunConfig } from '../run-config/file.ts';
import { isWorkloadName } from '../settings/workload-name.ts';
import { groupNames } from '../run-config/group-file.ts';
import { CLIENTS } from '../clients/table.ts';
import { openProvider } from '../secrets/open-provider.ts';
import { isSystemName } from '../secrets/reference.ts';
import { statusNames } from '../supervisor/state.ts';
import { viewWorkloads } from '../workloads/view.ts';

/** Nobody waits longer than this for a Tab. */
const CATALOGUE_MS = 2_000;

/** The names of the workloads, for completion. */
export async function offerWorkloads({ places }: Context): Promise<readonly Offer[]> {
  return (await statusNames(places)).map((value) => ({ value, brief: '' }));
}

/** A workload, then what it may reach and see. */
export async function offerRights(context: Context, [name]: readonly string[]): Promise<readonly Offer[]> {
  if (name === undefined) return offerWorkloads(context);
  if (!isWorkloadName(name)) return [];
  const config = await findRunConfig(context.places, name);
  if (config === undefined) return [];
  const { permission_profile: profile } = config;
  const hosts = config.isolate_network === true ? allowedHosts(profile).hosts : [];
  const paths = declaredMounts(profile, '/').map((one) => (isNamedVolume(one) ? one.target : one.source));
  return [...hosts, ...paths].map((value) => ({ value, brief: '' }));
}

/** The names of the groups, for completion. */
export async function offerGroups({ places }: Context): Promise<readonly Offer[]> {
  return (await groupNames(places)).map((value) => ({ value, brief: '' }));
}

/** The labels that workloads have, for completion: what selects them. */
export async function offerLabels(context: Context): Promise<readonly Offer[]> {
  const views = await viewWorkloads(context);
  const labels = views.flatMap((view) => Object.entries(view.labels).map((label) => label.join('=')));
  return [...new Set(labels)].toSorted().map((value) => ({ value, brief: '' }));
}

/** The keys of the configuration file, and what one of them may be, for completion. */
export async function offerConfig(
  _context: Context,
  [key, ...more]: readonly string[],
): Promise<readonly Offer[]> {
  const keys: readonly Field[] = appSettings;
  if (key === undefined) return appSettings.map((row) => ({ value: row.key, brief: row.brief }));
  const row = keys.find((one) => one.key === key);
  if (row === undefined || more.length > 0) return [];
  const values = row.kind === 'bool' ? ['true', 'false'] : (row.choices ?? []);
  return values.map((value) => ({ value, brief: '' }));
}

/** The MCP clients, for completion. */
export async function offerClients(): Promise<readonly Offer[]> {
  return CLIENTS.map(({ name, title }) => ({ value: name, brief: title }));
}

/** A client, then workloads. */
export async function offerConnections(
  context: Context,
  given: readonly string[],
): Promise<readonly Offer[]> {
  return given.length === 0 ? offerClients() : offerWorkloads(context);
}

/** The names of the catalogue's servers, for completion: each in full, and without its namespace. Nobody is asked, or waited for. */
export async function offerServers({ ask: _nobody, ...context }: Context): Promise<readonly Offer[]> {
  const late = AbortSignal.timeout(CATALOGUE_MS);
  const signal = AbortSignal.any([context.signal, late]);
  const listed = async () => (await catalogOf({ ...context, signal, renewsTokens: false })).list({ signal });
  const entries = await listed().catch((error: unknown) => {
    if (late.aborted) return [];
    throw error;
  });
  return entries.flatMap(({ name, document: { description: brief } }) => {
    const short = name.slice(name.lastIndexOf('/') + 1);
    return short === name ? [{ value: name, brief }] : [short, name].map((value) => ({ value, brief }));
  });
}

/** The names of secrets, for completion. Nothing is asked for a Tab. */
export async function offerSecrets({ ask: _nobody, ...context }: Context): Promise<readonly Offer[]> {
  const { list } = await openProvider(context);
  const secrets = (await list?.()) ?? [];
  return secrets
    .filter(({ name }) => !isSystemName(name))
    .map(({ name: value, description: brief = '' }) => ({ value, brief }));
}
