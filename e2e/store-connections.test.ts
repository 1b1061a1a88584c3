import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { silentLog } from '@skep/core/log/log.ts';
import { allowed, publishOf, sourceOf } from '@skep/registry/store/contract/fixture.ts';
import { NEWEST_SCHEMA } from '@skep/registry/store/schema/migrate.ts';
import { migratePostgres } from '@skep/registry/store/postgres/migrate.ts';
import { openPostgres } from '@skep/registry/store/postgres/postgres.ts';
import type { PostgresSettings } from '@skep/registry/store/postgres/settings.ts';
import type { Store } from '@skep/registry/store/store.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { component, repoRoot, title } from './require.ts';

const postgres = await component('postgres');
const PROGRAM = path.join(repoRoot, 'packages/registry/src/main.ts');

describe.skipIf(!postgres.available)(title('connections to PostgreSQL', postgres), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({
      bin: (await npmPostgres()) ?? '',
      // Without statistics the planner knows nothing of the tables, as for a while after much was written.
      settings: ['password_encryption=scram-sha-256', 'autovacuum=off'],
      files: {
        'pg_hba.conf': 'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n',
      },
    });
    await cluster.query('postgres', `create role filed login password 'only-in-the-file'`);
  });
  afterAll(() => cluster.stop());

  async function opened(settings: Partial<PostgresSettings>): Promise<{ store: Store; database: string }> {
    const database = await cluster.createDatabase();
    const place = cluster.place(database, settings);
    await migratePostgres(place, () => NEWEST_SCHEMA);
    const store = await openPostgres({ ...place, clock: systemClock, log: silentLog });
    onTestFinished(() => store.close());
    await store.reconcile({ sources: [sourceOf('internal', 'managed')], registries: [] });
    return { store, database };
  }

  /** Processes of the server for the pool, which is all connections but the one that listens. */
  async function pooled(database: string): Promise<number[]> {
    const rows = await cluster.query(
      'postgres',
      `select pid from pg_stat_activity where datname = '${database}' and query <> 'listen skep_registry'`,
    );
    return rows.map(({ pid }) => Number(pid));
  }

  const busy = (store: Store): Promise<unknown> =>
    Promise.all(Array.from({ length: 40 }, () => store.readEntries('internal')));

  test('are no more than maxOpenConns, and maxIdleConns of them stay', { timeout: 60_000 }, async () => {
    const { store, database } = await opened({ maxOpenConns: 3, maxIdleConns: 2 });
    await busy(store);
    expect(await pooled(database)).toHaveLength(3);
    // The driver takes an idle one away after ten seconds; looking for changes keeps one in use.
    await expect.poll(() => pooled(database), { timeout: 30_000, interval: 200 }).toHaveLength(2);
  });

  test('read a few of many entries in less time than all of them, without statistics', async () => {
    const { store } = await opened({});
    const names = Array.from({ length: 3_000 }, (_, index) => `a/${index}`);
    await Promise.all(names.map((name) => store.publish(publishOf(name, '1'), allowed)));
    const few = names.slice(-32).map((name) => ({ kind: 'server', namespace: '', name }) as const);
    const shortest = async (read: () => Promise<readonly unknown[]>, count: number): Promise<number> => {
      const times: number[] = [];
      for (let round = 0; round < 10; round += 1) {
        const start = performance.now();
        expect(await read()).toHaveLength(count);
        times.push(performance.now() - start);
      }
      return Math.min(...times);
    };
    const all = await shortest(() => store.readEntries('internal'), names.length);
    expect(await shortest(() => store.readSomeEntries('internal', few), few.length)).toBeLessThan(all / 2);
  });

  test('are replaced after connMaxLifetime', async () => {
    const { store, database } = await opened({ maxOpenConns: 2, connMaxLifetime: 1_000 });
    await busy(store);
    const first = new Set(await pooled(database));
    await expect
      .poll(
        async () => {
          await busy(store);
          return (await pooled(database)).filter((pid) => first.has(pid));
        },
        { timeout: 30_000, interval: 200 },
      )
      .toEqual([]);
  });

  // Less than the minute that a server waits for a password: who has none gives up at once.
  test('take the password from the file that PGPASSFILE names', { timeout: 50_000 }, async () => {
    const directory = await mkdtemp(path.join(os.tmpdir(), 'skep-pgpass-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const database = await cluster.createDatabase();
    await cluster.query('postgres', `alter database ${database} owner to filed`);
    const [config, file] = [path.join(directory, 'registry.yaml'), path.join(directory, 'passwords')];
    const place = { host: '127.0.0.1', port: cluster.port, user: 'filed', database, sslMode: 'disable' };
    await writeFile(
      config,
      JSON.stringify({
        sources: [{ name: 'internal', managed: {} }],
        registries: [{ name: 'team', sources: ['internal'] }],
        auth: { mode: 'anonymous' },
        database: place,
      }),
    );
    await writeFile(file, `127.0.0.1:${cluster.port}:${database}:filed:only-in-the-file\n`, {
      mode: 0o600,
    });
    const migrate = async (env: NodeJS.ProcessEnv): Promise<readonly [unknown, string]> => {
      const child = spawn(process.execPath, [PROGRAM, 'migrate', 'up', '-y', '--config', config], {
        env: { PATH: process.env['PATH'], HOME: directory, ...env },
      });
      let said = '';
      child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
      const [code] = await once(child, 'close');
      return [code, said];
    };
    const [refused, why] = await migrate({});
    expect([refused, why]).toEqual([1, expect.not.stringContaining('only-in-the-file')]);
    expect(await migrate({ PGPASSFILE: file })).toEqual([
      0,
      expect.stringContaining(`Schema is now ${NEWEST_SCHEMA}.`),
    ]);
  });

  test('of the release before go on beside this one, and what they hold outlives a step back and forth', async () => {
    const { store, database } = await opened({});
    await store.publish(publishOf('a/a', '1'), allowed);
    const before = await store.readEntries('internal');
    // What programs of the first schema write.
    for (const statement of [
      `insert into source (name, content_hash, synced_at, report) values ('old', null, null, null)
         on conflict (name) do nothing`,
      `insert into entry (source, kind, namespace, name, claims) values ('old', 'server', '', 'o', '')`,
      `insert into entry_version values ('old', 'server', '', 'o', '1', null, null, '{}', null, 'd', 'T', 'T')`,
      `update source set content_hash = 'h', synced_at = 'T', report = '{}' where name = 'old'`,
    ]) {
      await cluster.query(database, statement);
    }
    expect(await store.readEntries('old')).toMatchObject([{ name: 'o', versions: [{ version: '1' }] }]);
    const place = cluster.place(database);
    for (const target of [NEWEST_SCHEMA - 1, NEWEST_SCHEMA]) {
      expect(await migratePostgres(place, () => target)).toMatchObject({ after: target });
    }
    expect(await store.readEntries('internal')).toEqual(before);
    await store.publish(publishOf('a/a', '2'), allowed);
    expect((await store.reconcile({ sources: [], registries: [] })).value.inForce).toBe(true);
  });
});
