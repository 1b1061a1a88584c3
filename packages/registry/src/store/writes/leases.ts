import type { Kysely } from 'kysely';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Lease } from '../store.ts';
import type { Tables } from '../schema/tables.ts';
import type { Write } from './write.ts';

/** Both moments in milliseconds since 1970. */
export interface LeaseTerm {
  readonly now: number;
  readonly until: number;
}

/** One statement, so that of two replicas that ask at the same time one hears no. */
export async function acquireLease(
  db: Kysely<Tables>,
  { source, owner }: Lease,
  { now, until }: LeaseTerm,
): Promise<boolean> {
  const taken = await db
    .insertInto('sync_lease')
    .values({ source, owner, expires_at: until })
    .onConflict((conflict) =>
      conflict
        .column('source')
        .doUpdateSet({ owner, expires_at: until })
        .where((where) =>
          where.or([where('sync_lease.owner', '=', owner), where('sync_lease.expires_at', '<=', now)]),
        ),
    )
    .returning('owner')
    .execute();
  return taken.length > 0;
}

/** A lease that ran out and that nobody has taken since may be renewed: nothing happened in between. */
export async function renewLease(
  db: Kysely<Tables>,
  { source, owner }: Lease,
  { until }: LeaseTerm,
): Promise<boolean> {
  const renewed = await db
    .updateTable('sync_lease')
    .set({ expires_at: until })
    .where('source', '=', source)
    .where('owner', '=', owner)
    .returning('owner')
    .execute();
  return renewed.length > 0;
}

export async function releaseLease(db: Kysely<Tables>, { source, owner }: Lease): Promise<void> {
  await db.deleteFrom('sync_lease').where('source', '=', source).where('owner', '=', owner).execute();
}

/** Keeps somebody whose lease was taken over from writing what it fetched before (a fence). */
export async function assertHeld({ db, locksRows }: Write, { source, owner }: Lease): Promise<void> {
  const row = await db
    .selectFrom('sync_lease')
    .select('owner')
    .where('source', '=', source)
    .$if(locksRows, (query) => query.forShare())
    .executeTakeFirst();
  if (row?.owner !== owner) throw new SkepError('store/lease-lost');
}
