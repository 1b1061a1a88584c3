import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { NEWEST_SCHEMA } from './migrate.ts';
import { migratePostgres } from './migrate-postgres.ts';
import { openPostgres, type PoolState } from './postgres.ts';
import { placeText, type PostgresPlace } from './postgres-connect.ts';
import { openSqlite } from './sqlite.ts';
import type { Store } from './store.ts';

/** Where a store is kept: a file of this machine, or a database that several machines share. */
export type StorePlace =
  | { readonly kind: 'sqlite'; readonly path: string }
  | ({ readonly kind: 'postgres' } & PostgresPlace);

export interface OpenedStore extends Store {
  /** Of a store that keeps connections to a database. */
  pool?(): PoolState;
  /** Of a store that no other machine uses: a process that begins to serve need not wait for those of one that died. */
  forgetLeases?(): Promise<void>;
  /** Closes, and removes what this opening has made as far as that is a file: for a start that failed. */
  discard(): Promise<void>;
}

/** For people: the file, or `host:port/database`. */
export function storeText(place: StorePlace): string {
  return place.kind === 'sqlite' ? place.path : placeText(place.settings);
}

/** Opens the store that the configuration asks for, after bringing its schema up to date as the migration user. */
export async function openStore(
  place: StorePlace,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<OpenedStore> {
  if (place.kind === 'sqlite') return openSqlite({ path: place.path, clock, log });
  const { before, after } = await migratePostgres(place, (version) => Math.max(version, NEWEST_SCHEMA));
  log.info({ before, after }, before === after ? 'schema is up to date' : 'schema migrated');
  const store = await openPostgres({ ...place, clock, log });
  return { ...store, discard: () => store.close() };
}
