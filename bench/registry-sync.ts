import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { syntheticCatalogue } from './registry/catalogue.ts';
import { registryFolder, type ServedRegistry } from './registry/served.ts';
import type { Bench } from './row.ts';

const ENTRIES = 10_000;

interface Status {
  readonly phase: string;
  readonly changed: boolean;
  readonly lastAttempt: string;
  readonly lastSyncTime: string;
}

/** Synchronisations by the clock of the program. */
export const registrySyncBench: Bench = async (report) => {
  const folder = await registryFolder([syntheticCatalogue(ENTRIES)]);
  try {
    const registry = await folder.start();
    try {
      const first = await status(registry);
      report({
        name: `registry: first sync of ${ENTRIES} entries`,
        value: spent(first),
        unit: 'ms',
        ceiling: 5000,
      });
      const before = revision(folder.store);
      const second = await syncAgain(registry, first);
      if (second.changed || revision(folder.store) !== before)
        throw new Error('an unchanged source was written');
      report({
        name: `registry: sync of ${ENTRIES} unchanged entries, no writes`,
        value: spent(second),
        unit: 'ms',
        ceiling: 1000,
      });
    } finally {
      await registry.stop();
    }
  } finally {
    await folder.remove();
  }
};

async function status({ url }: ServedRegistry): Promise<Status> {
  const response = await fetch(new URL('/v1/sources/catalog-0', url));
  const { syncStatus } = (await response.json()) as { syncStatus: Status };
  if (syncStatus.phase !== 'complete' && syncStatus.phase !== 'syncing')
    throw new Error(JSON.stringify(syncStatus));
  return syncStatus;
}

async function syncAgain(registry: ServedRegistry, before: Status): Promise<Status> {
  const { status: code } = await fetch(new URL('/v1/sources/catalog-0/sync', registry.url), {
    method: 'POST',
  });
  if (code !== 202) throw new Error(`sync answered ${code}`);
  for (;;) {
    const now = await status(registry);
    if (now.phase === 'complete' && now.lastSyncTime !== before.lastSyncTime) return now;
    await delay(20);
  }
}

const spent = ({ lastAttempt, lastSyncTime }: Status): number =>
  Date.parse(lastSyncTime) - Date.parse(lastAttempt);

/** Of the last commit that changed what is served. */
function revision(database: string): unknown {
  const file = new DatabaseSync(database, { readOnly: true });
  try {
    return file.prepare('select revision from store_state').get()?.['revision'];
  } finally {
    file.close();
  }
}
