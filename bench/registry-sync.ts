import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { syntheticCatalogue } from './registry/catalogue.ts';
import { startRegistry, type ServedRegistry } from './registry/served.ts';
import type { Bench } from './row.ts';

const ENTRIES = 10_000;
const MANY = 100_000;

interface Status {
  readonly phase: string;
  readonly changed: boolean;
  readonly lastAttempt: string;
  readonly lastSyncTime: string;
}

/** Synchronisations by the clock of the program, and a start with very many entries (in full mode). */
export const registrySyncBench: Bench = async (report, { seconds }) => {
  await withFolder(ENTRIES, async ({ config, database }) => {
    const registry = await startRegistry(config);
    try {
      const first = await status(registry);
      report({
        name: `registry: first sync of ${ENTRIES} entries`,
        value: spent(first),
        unit: 'ms',
        ceiling: 5000,
      });
      const before = revision(database);
      const second = await syncAgain(registry, first);
      if (second.changed || revision(database) !== before) throw new Error('an unchanged source was written');
      report({
        name: `registry: sync of ${ENTRIES} unchanged entries, no writes`,
        value: spent(second),
        unit: 'ms',
        ceiling: 1000,
      });
    } finally {
      await registry.stop();
    }
  });
  // Too long for the gate.
  if (seconds <= 1) return;
  await withFolder(MANY, async ({ config }) => {
    await (await startRegistry(config)).stop();
    const registry = await startRegistry(config);
    try {
      report({
        name: `registry: ready with ${MANY} entries`,
        value: registry.readyMs,
        unit: 'ms',
        ceiling: 5000,
      });
      const memory = await registry.residentMB();
      report({ name: `registry: memory with ${MANY} entries`, value: memory, unit: 'MB', ceiling: 600 });
    } finally {
      await registry.stop();
    }
  });
};

interface Folder {
  readonly config: string;
  readonly database: string;
}

/** Files of at most 10,000 entries each, because one catalogue has a limit of 100 MiB. */
async function withFolder(entries: number, use: (folder: Folder) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-bench-'));
  try {
    const names = Array.from({ length: entries / ENTRIES }, (_, index) => `bench-${index}`);
    for (const [index, name] of names.entries()) {
      const text = syntheticCatalogue(ENTRIES).replaceAll('io.github.example-', `io.github.part${index}-`);
      await writeFile(path.join(folder, `${name}.json`), text);
    }
    const config = path.join(folder, 'registry.yaml');
    const database = path.join(folder, 'registry.db');
    await writeFile(
      config,
      JSON.stringify({
        sources: names.map((name) => ({
          name,
          file: { path: `${name}.json` },
          syncPolicy: { interval: '1h' },
        })),
        registries: [{ name: 'bench', sources: names }],
        auth: { mode: 'anonymous' },
        storage: { path: database },
      }),
    );
    await use({ config, database });
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function status({ url }: ServedRegistry): Promise<Status> {
  const response = await fetch(new URL('/v1/sources/bench-0', url));
  const { syncStatus } = (await response.json()) as { syncStatus: Status };
  if (syncStatus.phase !== 'complete' && syncStatus.phase !== 'syncing')
    throw new Error(JSON.stringify(syncStatus));
  return syncStatus;
}

async function syncAgain(registry: ServedRegistry, before: Status): Promise<Status> {
  const { status: code } = await fetch(new URL('/v1/sources/bench-0/sync', registry.url), { method: 'POST' });
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
