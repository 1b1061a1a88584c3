import { SkepError } from '@skep/core/errors/skep-error.ts';
import { takesForce } from './config-generation.ts';
import {
  registryText,
  sourceText,
  type BlockedSource,
  type DesiredState,
  type NameChanges,
  type ReconcileReport,
} from '../desired-state.ts';
import { listRegistries, writeRegistry } from './registries.ts';
import type { StoredRegistry, StoredSource } from '../rows.ts';
import { listSources, lockedSource, registriesOf, removeSource, writeSource } from './sources.ts';
import { addMissingStatus } from './statuses.ts';
import type { Write } from '../database.ts';

/** The rows that a start compares with the file. */
interface Existing {
  readonly sources: ReadonlyMap<string, StoredSource>;
  readonly registries: ReadonlyMap<string, StoredRegistry>;
}

const NOTHING: NameChanges = { created: [], updated: [], deleted: [] };
const SUPERSEDED: ReconcileReport = { inForce: false, sources: NOTHING, registries: NOTHING, blocked: [] };

/**
 * Makes the CONFIG part of the store what the file says (docs/behaviour/registry.md#reconciliation), unless a process
 * that runs was started with a newer one (docs/behaviour/registry.md#replicas). `replica` names this process, which from
 * now on counts as running with this configuration; a process that ends at once gives none.
 *
 * No reference dangles: what must go goes first, then sources, then the registries that link them. Rows that already say
 * the same are not written, so a restart changes nothing.
 */
export async function reconcile(
  write: Write,
  desired: DesiredState,
  replica?: string,
): Promise<ReconcileReport> {
  await write.lockAdministration();
  if (!(await takesForce(write, desired, replica))) return SUPERSEDED;
  const existing = await readExisting(write);
  refuseOverwriting(existing, desired);
  const goneRegistries = gone(existing.registries, desired.registries);
  const changedRegistries = desired.registries.filter((registry) =>
    differs(registry, existing.registries.get(registry.name), registryText),
  );
  await unlink(write, [...goneRegistries, ...changedRegistries.map(({ name }) => name)], goneRegistries);
  const { deleted, blocked } = await removeGone(write, existing, desired);
  refuseSecondManaged(existing, desired, blocked);
  const sources = await writeSources(write, existing, desired);
  for (const registry of changedRegistries) {
    write.record({ subject: 'registry', name: registry.name });
    await writeRegistry(write, registry, existing.registries.get(registry.name) ?? 'CONFIG');
  }
  for (const source of desired.sources) await addMissingStatus(write.db, source);
  return {
    inForce: true,
    sources: { ...sources, deleted },
    registries: { ...split(changedRegistries, existing.registries), deleted: goneRegistries },
    blocked,
  };
}

async function readExisting(write: Write): Promise<Existing> {
  const sources = await listSources(write.db);
  // Locked in one order by everybody, so that nobody waits in a circle.
  for (const { name } of sources) await lockedSource(write, name);
  const registries = await listRegistries(write.db);
  return {
    sources: new Map(sources.map((source) => [source.name, source])),
    registries: new Map(registries.map((registry) => [registry.name, registry])),
  };
}

/** The file must not take over what somebody made through the API. All names at once. */
function refuseOverwriting(existing: Existing, desired: DesiredState): void {
  const taken = (rows: Existing['sources'] | Existing['registries'], names: readonly { name: string }[]) =>
    names.map(({ name }) => name).filter((name) => rows.get(name)?.creationType === 'API');
  const sources = taken(existing.sources, desired.sources);
  const registries = taken(existing.registries, desired.registries);
  const parts = [
    ...(sources.length > 0 ? [`cannot overwrite API-created sources: [${sources.join(', ')}]`] : []),
    ...(registries.length > 0 ? [`cannot overwrite API-created registries: [${registries.join(', ')}]`] : []),
  ];
  if (parts.length > 0) throw new SkepError('store/api-created', { message: parts.join('; ') });
}

/** There is room for one managed source, and one made through the API or kept for its registries may have it. */
function refuseSecondManaged(
  existing: Existing,
  desired: DesiredState,
  blocked: readonly BlockedSource[],
): void {
  const wanted = desired.sources.find(({ kind }) => kind === 'managed');
  if (wanted === undefined) return;
  const holder = [...existing.sources.values()].find(
    ({ name, kind, creationType }) =>
      kind === 'managed' &&
      name !== wanted.name &&
      (creationType === 'API' || blocked.some(({ source }) => source === name)),
  );
  if (holder === undefined) return;
  const keepers = blocked.find(({ source }) => source === holder.name)?.registries ?? [];
  const why =
    keepers.length === 0
      ? 'was created through the API'
      : `is still listed by the registries "${keepers.join('", "')}"`;
  throw new SkepError('store/managed-exists', {
    message: `cannot add the managed source "${wanted.name}": the managed source "${holder.name}" ${why}`,
  });
}

async function unlink(write: Write, names: readonly string[], remove: readonly string[]): Promise<void> {
  for (const name of names)
    await write.db.deleteFrom('registry_source').where('registry', '=', name).execute();
  for (const name of remove) {
    write.record({ subject: 'registry', name });
    await write.db.deleteFrom('registry').where('name', '=', name).execute();
  }
}

async function removeGone(
  write: Write,
  existing: Existing,
  desired: DesiredState,
): Promise<{ readonly deleted: readonly string[]; readonly blocked: readonly BlockedSource[] }> {
  const deleted: string[] = [];
  const blocked: BlockedSource[] = [];
  for (const name of gone(existing.sources, desired.sources)) {
    const registries = await registriesOf(write.db, name);
    if (registries.length === 0) {
      write.record({ subject: 'source', name });
      await removeSource(write.db, name);
      deleted.push(name);
      continue;
    }
    blocked.push({ source: name, registries });
    if (existing.sources.get(name)?.orphaned === true) continue;
    write.record({ subject: 'source', name });
    await write.db.updateTable('source').set({ orphaned: 1 }).where('name', '=', name).execute();
  }
  return { deleted, blocked };
}

async function writeSources(
  write: Write,
  existing: Existing,
  desired: DesiredState,
): Promise<Omit<NameChanges, 'deleted'>> {
  const changed = desired.sources.filter((source) => {
    const before = existing.sources.get(source.name);
    return before?.orphaned === true || differs(source, before, sourceText);
  });
  // The one that gives the managed place up comes before the one that takes it.
  const inOrder = changed.toSorted((a, b) => Number(a.kind === 'managed') - Number(b.kind === 'managed'));
  for (const source of inOrder) {
    write.record({ subject: 'source', name: source.name });
    await writeSource(write, source, existing.sources.get(source.name) ?? 'CONFIG');
  }
  return split(changed, existing.sources);
}

/** Made by an earlier file and not in this one. */
function gone(
  rows: Existing['sources'] | Existing['registries'],
  desired: readonly { name: string }[],
): string[] {
  const kept = new Set(desired.map(({ name }) => name));
  return [...rows.values()]
    .filter(({ name, creationType }) => creationType === 'CONFIG' && !kept.has(name))
    .map(({ name }) => name);
}

function split(
  changed: readonly { readonly name: string }[],
  before: Existing['sources'] | Existing['registries'],
): Omit<NameChanges, 'deleted'> {
  const names = changed.map(({ name }) => name);
  return {
    created: names.filter((name) => !before.has(name)),
    updated: names.filter((name) => before.has(name)),
  };
}

function differs<T>(wanted: T, held: T | undefined, text: (value: T) => string): boolean {
  return held === undefined || text(wanted) !== text(held);
}
