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
import type { NamedSource, StoredSource } from '../rows.ts';
import { listSources, lockedSource, registriesOf, removeSource, writeSource } from './sources.ts';
import { addMissingStatus } from './statuses.ts';
import type { Write } from '../database.ts';

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
  const storedSources = await listSources(write.db);
  // Locked in one order by everybody, so that nobody waits in a circle.
  for (const { name } of storedSources) await lockedSource(write, name);
  const sources = compare(desired.sources, storedSources, textWithOrphans);
  const registries = compare(desired.registries, await listRegistries(write.db), registryText);
  refuseOverwriting(sources.taken, registries.taken);
  await unlink(write, [...registries.gone, ...registries.created, ...registries.updated], registries.gone);
  const { deleted, blocked } = await removeGone(write, sources);
  refuseSecondManaged(storedSources, desired, blocked);
  // The one that gives the managed place up comes before the one that takes it.
  const inOrder = sources.changed.toSorted(
    (a, b) => Number(a.kind === 'managed') - Number(b.kind === 'managed'),
  );
  for (const source of inOrder) {
    write.record({ subject: 'source', name: source.name });
    await writeSource(write, source, sources.before.get(source.name) ?? 'CONFIG');
  }
  for (const registry of registries.changed) {
    write.record({ subject: 'registry', name: registry.name });
    await writeRegistry(write, registry, registries.before.get(registry.name) ?? 'CONFIG');
  }
  for (const source of desired.sources) await addMissingStatus(write.db, source);
  return {
    inForce: true,
    sources: { created: sources.created, updated: sources.updated, deleted },
    registries: { created: registries.created, updated: registries.updated, deleted: registries.gone },
    blocked,
  };
}

/** One that is in the file again is written again. */
function textWithOrphans(source: NamedSource & { readonly orphaned?: boolean }): string {
  return `${sourceText(source)} ${source.orphaned === true}`;
}

/** What the file says of sources or registries beside those that there are; equal texts are equal settings. */
function compare<
  Wanted extends { readonly name: string },
  Row extends Wanted & Pick<StoredSource, 'creationType'>,
>(wanted: readonly Wanted[], rows: readonly Row[], text: (settings: Wanted) => string) {
  const before = new Map(rows.map((row) => [row.name, row]));
  const kept = new Set(wanted.map(({ name }) => name));
  const changed = wanted.filter((settings) => {
    const row = before.get(settings.name);
    return row === undefined || text(settings) !== text(row);
  });
  const names = changed.map(({ name }) => name);
  return {
    before,
    changed,
    created: names.filter((name) => !before.has(name)),
    updated: names.filter((name) => before.has(name)),
    /** Made by an earlier file and not in this one. */
    gone: rows.flatMap(({ name, creationType }) =>
      creationType === 'CONFIG' && !kept.has(name) ? name : [],
    ),
    /** Made through the API. */
    taken: [...kept].filter((name) => before.get(name)?.creationType === 'API'),
  };
}

/** The file must not take over what somebody made through the API. All names at once. */
function refuseOverwriting(sources: readonly string[], registries: readonly string[]): void {
  const parts = [
    ...(sources.length > 0 ? [`cannot overwrite API-created sources: [${sources.join(', ')}]`] : []),
    ...(registries.length > 0 ? [`cannot overwrite API-created registries: [${registries.join(', ')}]`] : []),
  ];
  if (parts.length > 0) throw new SkepError('store/api-created', { message: parts.join('; ') });
}

/** There is room for one managed source, and one made through the API or kept for its registries may have it. */
function refuseSecondManaged(
  stored: readonly StoredSource[],
  desired: DesiredState,
  blocked: readonly BlockedSource[],
): void {
  const wanted = desired.sources.find(({ kind }) => kind === 'managed');
  if (wanted === undefined) return;
  const holder = stored.find(
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
  { gone, before }: { readonly gone: readonly string[]; readonly before: ReadonlyMap<string, StoredSource> },
): Promise<{ readonly deleted: readonly string[]; readonly blocked: readonly BlockedSource[] }> {
  const deleted: string[] = [];
  const blocked: BlockedSource[] = [];
  for (const name of gone) {
    const registries = await registriesOf(write.db, name);
    if (registries.length === 0) {
      write.record({ subject: 'source', name });
      await removeSource(write.db, name);
      deleted.push(name);
      continue;
    }
    blocked.push({ source: name, registries });
    if (before.get(name)?.orphaned === true) continue;
    write.record({ subject: 'source', name });
    await write.db.updateTable('source').set({ orphaned: 1 }).where('name', '=', name).execute();
  }
  return { deleted, blocked };
}
