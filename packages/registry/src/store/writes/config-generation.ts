import { hash } from 'node:crypto';
import type { Kysely } from 'kysely';
import { registryText, sourceText, type DesiredState } from '../desired-state.ts';
import type { Tables } from '../schema/tables.ts';
import type { Moment, Write } from '../database.ts';

/** Milliseconds for which a process that was killed still counts as running. */
export const ALIVE_MS = 120_000;
const KEPT_GENERATIONS = 100;
const FORGOTTEN_AFTER_MS = 24 * 60 * 60_000;

/**
 * Whether this configuration is the one that the store follows (docs/behaviour/registry.md#replicas). The store
 * remembers the order in which it met configurations; one that it knows must stand back while a process runs with one
 * that came later, so that an old replica that restarts in the middle of a rollout takes nothing away. When no such
 * process is left it was put back on purpose, and is the newest again. Call it under the administration lock.
 */
export async function takesForce(write: Write, desired: DesiredState, replica?: string): Promise<boolean> {
  const { db } = write;
  const own = configurationHash(desired);
  const now = Date.parse(write.now);
  await db
    .deleteFrom('config_replica')
    .where('alive_until', '<=', now - FORGOTTEN_AFTER_MS)
    .execute();
  if (replica !== undefined) {
    const row = { replica, hash: own, alive_until: now + ALIVE_MS };
    await db
      .insertInto('config_replica')
      .values(row)
      .onConflict((conflict) => conflict.column('replica').doUpdateSet(row))
      .execute();
  }
  const known = await db.selectFrom('config_generation').selectAll().orderBy('generation').execute();
  const newest = known.at(-1);
  if (newest?.hash === own) return true;
  const before = known.find((row) => row.hash === own);
  if (before !== undefined && (await runsNewer(db, before.generation, now))) return false;
  const generation = (newest?.generation ?? 0) + 1;
  await db
    .insertInto('config_generation')
    .values({ hash: own, generation })
    .onConflict((conflict) => conflict.column('hash').doUpdateSet({ generation }))
    .execute();
  await db
    .deleteFrom('config_generation')
    .where('generation', '<=', generation - KEPT_GENERATIONS)
    .execute();
  return true;
}

/** The process still runs. Without this for `ALIVE_MS` it does not count any more. */
export async function renewReplica({ db, now }: Moment, replica: string): Promise<void> {
  await db
    .updateTable('config_replica')
    .set({ alive_until: now + ALIVE_MS })
    .where('replica', '=', replica)
    .execute();
}

/** The process ends, and others need not stand back for its configuration. */
export async function removeReplica({ db }: Moment, replica: string): Promise<void> {
  await db.deleteFrom('config_replica').where('replica', '=', replica).execute();
}

async function runsNewer(db: Kysely<Tables>, generation: number, now: number): Promise<boolean> {
  const newer = await db
    .selectFrom('config_replica as r')
    .innerJoin('config_generation as g', 'g.hash', 'r.hash')
    .where('g.generation', '>', generation)
    .where('r.alive_until', '>', now)
    .select('r.replica')
    .executeTakeFirst();
  return newer !== undefined;
}

/** The order in which a file lists sources and registries makes no difference. */
function configurationHash({ sources, registries }: DesiredState): string {
  const texts = [
    ...sources.map((source) => `source ${source.name} ${sourceText(source)}`),
    ...registries.map((registry) => `registry ${registry.name} ${registryText(registry)}`),
  ];
  return hash('sha256', JSON.stringify(texts.toSorted()), 'base64url');
}
