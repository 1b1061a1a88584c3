import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { silentLog } from '@skep/core/log/log.ts';
import { sourceOf } from '@skep/registry/store/contract/fixture.ts';
import { migrationTarget } from '@skep/registry/store/schema/migrate.ts';
import { migratePostgres } from '@skep/registry/store/postgres/migrate.ts';
import { openPostgres } from '@skep/registry/store/postgres/postgres.ts';
import { openSqlite } from '@skep/registry/store/sqlite/sqlite.ts';
import type { Store } from '@skep/registry/store/store.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { component, title } from './require.ts';

const postgres = await component('postgres');
const WRITER = path.join(import.meta.dirname, 'postgres/writer.ts');
const MANAGED = { sources: [sourceOf('internal', 'managed')], registries: [] };
/** Writers killed in one test. */
const ROUNDS = 8;
const LANES = 8;

const HALVES = `select count(*) as n from entry e where not exists (select 1 from entry_version v where
  v.source = e.source and v.kind = e.kind and v.namespace = e.namespace and v.name = e.name)`;

/** A process that publishes; `acknowledged` grows as it prints. */
class Writer {
  readonly acknowledged: string[] = [];
  readonly #child: ChildProcess;
  readonly #listeners = new Set<() => void>();

  constructor(...args: readonly string[]) {
    const child = spawn(process.execPath, [WRITER, ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
    this.#child = child;
    let rest = '';
    child.stdout.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      this.acknowledged.push(...lines);
      for (const listener of this.#listeners) listener();
    });
  }

  /** Resolves when so many publishes were acknowledged. */
  reached(count: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        if (this.acknowledged.length < count) return;
        this.#listeners.delete(check);
        resolve();
      };
      this.#listeners.add(check);
      const ended = (): void => reject(new Error('the writer ended by itself'));
      this.#child.once('exit', ended);
      if (this.#child.exitCode !== null) ended();
      check();
    });
  }

  /** Resolves when it is gone and everything it printed was read. */
  async kill(): Promise<void> {
    const closed = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await closed;
  }
}

/** Lets `ROUNDS` writers publish and kills each at another moment; what they were told was stored. */
async function killWriters(...args: readonly string[]): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const writer = new Writer(...args, `round${round}`);
    await writer.reached(20 + Math.floor(Math.random() * 60));
    await writer.kill();
    acknowledged.push(...writer.acknowledged);
  }
  return acknowledged;
}

/** Everything acknowledged is there, whole; nothing is there that nobody asked for. */
async function expectKept(store: Store, acknowledged: readonly string[], unanswered: number): Promise<void> {
  const entries = await store.readEntries('internal');
  const stored = entries.flatMap(({ name, versions }) =>
    versions.map(({ version, document }) => {
      expect(document).toBe(JSON.stringify({ name, version }));
      return `${name}@${version}`;
    }),
  );
  const lost = new Set(acknowledged).difference(new Set(stored));
  expect([...lost]).toEqual([]);
  expect(stored.length - acknowledged.length).toBeLessThanOrEqual(unanswered);
}

describe('a writer killed at any moment', () => {
  test('loses no acknowledged publish and leaves no half entry in SQLite', async () => {
    const directory = await mkdtemp(path.join(os.tmpdir(), 'skep-crash-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const file = path.join(directory, 'registry.db');
    const open = (): Promise<Store> => openSqlite({ path: file, clock: systemClock, log: silentLog });
    const first = await open();
    await first.reconcile(MANAGED);
    await first.close();
    const acknowledged = await killWriters('sqlite', file);
    const store = await open();
    await expectKept(store, acknowledged, ROUNDS * LANES);
    await store.close();
    const raw = new DatabaseSync(file);
    expect(raw.prepare(HALVES).get()).toEqual({ n: 0 });
    expect(raw.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' });
    raw.close();
  });
});

describe.skipIf(!postgres.available)(
  title('PostgreSQL and its writers killed at any moment', postgres),
  () => {
    const started = async (): Promise<{ cluster: Cluster; database: string; open: () => Promise<Store> }> => {
      const cluster = await Cluster.start({ bin: (await npmPostgres()) ?? '', durable: true });
      onTestFinished(() => cluster.stop());
      const database = await cluster.createDatabase();
      await migratePostgres(cluster.place(database), (before) => migrationTarget(before, 'up', 0));
      const open = (): Promise<Store> =>
        openPostgres({ ...cluster.place(database), clock: systemClock, log: silentLog });
      const store = await open();
      await store.reconcile(MANAGED);
      await store.close();
      return { cluster, database, open };
    };

    test('loses no acknowledged publish and leaves no half entry when writers are killed', async () => {
      const { cluster, database, open } = await started();
      const acknowledged = await killWriters('postgres', String(cluster.port), database);
      const store = await open();
      await expectKept(store, acknowledged, ROUNDS * LANES);
      await store.close();
      expect(await cluster.query(database, HALVES)).toEqual([{ n: '0' }]);
    });

    test('loses no acknowledged publish when the server is killed; the writer goes on after its recovery', async () => {
      const { cluster, database, open } = await started();
      const watching = await open();
      onTestFinished(() => watching.close());
      let newest = 0;
      const revisions = new Set<() => void>();
      watching.onChange((revision) => {
        newest = revision;
        for (const check of revisions) check();
      });
      const writer = new Writer('postgres', String(cluster.port), database, 'storm');
      let crashes = 0;
      for (; crashes < 3; crashes++) {
        await writer.reached(writer.acknowledged.length + 20 + Math.floor(Math.random() * 100));
        await cluster.kill();
        await cluster.resume();
        await writer.reached(writer.acknowledged.length + 20);
      }
      await writer.kill();
      const store = await open();
      onTestFinished(() => store.close());
      await expectKept(store, writer.acknowledged, LANES * (crashes + 1));
      expect(await cluster.query(database, HALVES)).toEqual([{ n: '0' }]);
      // A replica that lived through it all has caught up.
      const { revision } = await store.changesSince(0);
      await new Promise<void>((resolve) => {
        const check = (): void => {
          if (newest >= revision) resolve();
        };
        revisions.add(check);
        check();
      });
      expect(await watching.readEntries('internal')).toEqual(await store.readEntries('internal'));
    });
  },
);
