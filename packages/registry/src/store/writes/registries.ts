import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Kysely } from 'kysely';
import type { CreationType } from '../../access/admin-scope.ts';
import type { DecideOnRegistry, DecideOnRegistryDeletion } from '../decisions.ts';
import type { NamedRegistry, RegistrySettings, StoredRegistry } from '../rows.ts';
import { storedSource, unknownSource } from './sources.ts';
import type { Tables } from '../schema/tables.ts';
import type { Work, Write } from './write.ts';

/** Ascending by name. */
export async function listRegistries(db: Kysely<Tables>): Promise<StoredRegistry[]> {
  return storedRegistries(await linkRows(db).execute());
}

export async function readRegistry(db: Kysely<Tables>, name: string): Promise<StoredRegistry | undefined> {
  return storedRegistries(await linkRows(db).where('r.name', '=', name).execute())[0];
}

/** Creates or replaces a registry with creation type API. Fails with `store/source-unknown`. */
export function puttingRegistry(
  name: string,
  settings: RegistrySettings,
  decide: DecideOnRegistry,
): Work<{ registry: StoredRegistry; created: boolean }> {
  return async (write) => {
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
  };
}

/** Fails with `registry/unknown-registry` when the decision lets an unknown name pass. */
export function deletingRegistry(name: string, decide: DecideOnRegistryDeletion): Work<StoredRegistry> {
  return async (write) => {
    await write.lockAdministration();
    const existing = await readRegistry(write.db, name);
    decide(existing);
    if (existing === undefined) throw new SkepError('registry/unknown-registry');
    write.record({ subject: 'registry', name });
    await write.db.deleteFrom('registry').where('name', '=', name).execute();
    return existing;
  };
}

/** The row of a registry that is created now or replaces `before`, and its links. */
export async function writeRegistry(
  write: Write,
  { name, sources, claims }: NamedRegistry,
  before: StoredRegistry | CreationType,
): Promise<StoredRegistry> {
  const [creationType, createdAt] =
    typeof before === 'string' ? [before, write.now] : [before.creationType, before.createdAt];
  const registry = { name, creationType, sources, claims, createdAt, updatedAt: write.now };
  const row = {
    name,
    creation_type: creationType,
    claims,
    created_at: createdAt,
    updated_at: write.now,
  };
  await write.db
    .insertInto('registry')
    .values(row)
    .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
    .execute();
  await write.db.deleteFrom('registry_source').where('registry', '=', name).execute();
  await write.db
    .insertInto('registry_source')
    .values(sources.map((source, position) => ({ registry: name, source, position })))
    .execute();
  return registry;
}

function linkRows(db: Kysely<Tables>) {
  return db
    .selectFrom('registry as r')
    .leftJoin('registry_source as l', 'l.registry', 'r.name')
    .select(['r.name', 'r.creation_type as creationType', 'r.claims', 'l.source'])
    .select(['r.created_at as createdAt', 'r.updated_at as updatedAt'])
    .orderBy('r.name')
    .orderBy('l.position');
}

type LinkRow = Omit<StoredRegistry, 'sources'> & { readonly source: string | null };

function storedRegistries(rows: readonly LinkRow[]): StoredRegistry[] {
  return [...Map.groupBy(rows, ({ name }) => name).values()].flatMap((links) => {
    const sources = links.flatMap(({ source }) => source ?? []);
    return links.slice(0, 1).map(({ source: _, ...registry }) => ({ ...registry, sources }));
  });
}
