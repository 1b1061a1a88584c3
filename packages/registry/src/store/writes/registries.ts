import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Kysely } from 'kysely';
import type { CreationType } from '../../access/admin-scope.ts';
import type { DecideOnRegistry } from '../decisions.ts';
import type { NamedRegistry, RegistrySettings, StoredRegistry } from '../rows.ts';
import { storedSource, unknownSource } from './sources.ts';
import type { RegistryTable, Tables } from '../schema/tables.ts';
import type { Write } from '../database.ts';

/** Ascending by name. */
export async function listRegistries(db: Kysely<Tables>): Promise<StoredRegistry[]> {
  return storedRegistries(await linkRows(db).execute());
}

export async function readRegistry(db: Kysely<Tables>, name: string): Promise<StoredRegistry | undefined> {
  return storedRegistries(await linkRows(db).where('r.name', '=', name).execute())[0];
}

/** Creates or replaces a registry with creation type API. Fails with `store/source-unknown`. */
export async function putRegistry(
  write: Write,
  name: string,
  settings: RegistrySettings,
  decide: DecideOnRegistry,
): Promise<{ registry: StoredRegistry; created: boolean }> {
  await write.lockAdministration();
  const existing = await readRegistry(write.db, name);
  const rows = await write.db
    .selectFrom('source')
    .selectAll()
    .where('name', 'in', settings.sources)
    .execute();
  const sources = new Map(rows.map((row) => [row.name, storedSource(row)]));
  decide({ existing, sources });
  const missing = settings.sources.find((source) => !sources.has(source));
  if (missing !== undefined) throw unknownSource(missing);
  write.record({ subject: 'registry', name });
  const registry = await writeRegistry(write, { name, ...settings }, existing ?? 'API');
  return { registry, created: existing === undefined };
}

/** Fails with `registry/unknown-registry` when the decision lets an unknown name pass. */
export async function deleteRegistry(
  write: Write,
  name: string,
  decide: (existing: StoredRegistry | undefined) => void,
): Promise<StoredRegistry> {
  await write.lockAdministration();
  const existing = await readRegistry(write.db, name);
  decide(existing);
  if (existing === undefined) throw new SkepError('registry/unknown-registry');
  write.record({ subject: 'registry', name });
  await write.db.deleteFrom('registry').where('name', '=', name).execute();
  return existing;
}

/** The row of a registry that is created now or replaces `before`, and its links. */
export async function writeRegistry(
  write: Write,
  { name, sources, claims }: NamedRegistry,
  before: StoredRegistry | CreationType,
): Promise<StoredRegistry> {
  const isNew = typeof before === 'string';
  const row: RegistryTable = {
    name,
    creation_type: isNew ? before : before.creationType,
    claims,
    created_at: isNew ? write.now : before.createdAt,
    updated_at: write.now,
  };
  if (isNew) await write.db.insertInto('registry').values(row).execute();
  else await write.db.updateTable('registry').set(row).where('name', '=', name).execute();
  await write.db.deleteFrom('registry_source').where('registry', '=', name).execute();
  await write.db
    .insertInto('registry_source')
    .values(sources.map((source, position) => ({ registry: name, source, position })))
    .execute();
  return storedRegistry(row, sources);
}

function linkRows(db: Kysely<Tables>) {
  return db
    .selectFrom('registry as r')
    .leftJoin('registry_source as l', 'l.registry', 'r.name')
    .selectAll('r')
    .select('l.source')
    .orderBy('r.name')
    .orderBy('l.position');
}

function storedRegistries(
  rows: readonly (RegistryTable & { readonly source: string | null })[],
): StoredRegistry[] {
  return [...Map.groupBy(rows, (row) => row.name).values()].flatMap((links) => {
    const sources = links.flatMap(({ source }) => source ?? []);
    return links.slice(0, 1).map((row) => storedRegistry(row, sources));
  });
}

function storedRegistry(row: RegistryTable, sources: readonly string[]): StoredRegistry {
  return {
    name: row.name,
    creationType: row.creation_type,
    sources,
    claims: row.claims,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
