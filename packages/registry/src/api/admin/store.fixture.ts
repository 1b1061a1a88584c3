import { silentLog } from '@skep/core/log/log.ts';
import { openSqlite } from '../../store/sqlite/sqlite.ts';
import { IN_MEMORY } from '../../store/sqlite/private-file.ts';
import type { Store } from '../../store/store.ts';
import { systemClock } from '@skep/core/time/clock.ts';

/** Opens a fresh, empty store for each test of this folder: in memory, unless whoever runs the tests has another. */
export const storeUnderTest = {
  open: (): Promise<Store> => openSqlite({ path: IN_MEMORY, clock: systemClock, log: silentLog }),
};
