import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Moment, Write } from '../database.ts';

/** Somebody's right to synchronise a source, until a moment. Clocks of replicas should agree to a second or so. */
export interface Lease {
  readonly source: string;
  /** Unique to one process. */
  readonly owner: string;
}

/** Takes the lease, or keeps it, unless somebody else holds it. One statement: of two who ask at once one hears no. */
export async function acquireLease(
  { db, now }: Moment,
  { source, owner }: Lease,
  milliseconds: number,
): Promise<boolean> {
  const until = now + milliseconds;
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

/**
 * The heartbeat; false when the lease has been lost, after which the work must stop. One that ran out and that nobody has
 * taken since may be renewed: nothing happened in between.
 */
export async function renewLease(
  { db, now }: Moment,
  { source, owner }: Lease,
  milliseconds: number,
): Promise<boolean> {
  const renewed = await db
    .updateTable('sync_lease')
    .set({ expires_at: now + milliseconds })
    .where((where) => where.and({ source, owner }))
    .returning('owner')
    .execute();
  return renewed.length > 0;
}

/** Gives up the lease, if it is held. */
export async function releaseLease({ db }: Moment, { source, owner }: Lease): Promise<void> {
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
