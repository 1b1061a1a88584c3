import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '@skep/core/time/clock.ts';
import { storeContract } from '../contract/contract.ts';
import { allowed, publishOf, replacementOf, sourceOf, statusAt } from '../contract/fixture.ts';
import { NEWEST_SCHEMA } from '../schema/migrate.ts';
import { migrateSqlite } from './migrate.ts';
import { IN_MEMORY } from './private-file.ts';
import { openSqlite, type SqliteStore } from './sqlite.ts';

storeContract('SQLite file', async (clock) => {
  const directory = await mkdtemp(join(tmpdir(), 'skep-store-'));
  const path = join(directory, 'made', 'registry.db');
  const stores: SqliteStore[] = [];
  const another = async (): Promise<SqliteStore> => {
    const store = await openSqlite({ path, clock, log: silentLog });
    stores.push(store);
    return store;
  };
  return {
    store: await another(),
    another,
    dispose: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await rm(directory, { recursive: true });
    },
  };
});

describe('openSqlite', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'skep-store-'));
  });
  afterEach(() => rm(directory, { recursive: true }));
  const open = (path: string) => openSqlite({ path, clock: systemClock, log: silentLog });

  test('keeps everything through a restart', async () => {
    const path = join(directory, 'registry.db');
    const first = await open(path);
    await first.reconcile({ sources: [sourceOf('internal', 'managed')], registries: [] });
    const { revision } = await first.publish(publishOf('a/a', '1'), allowed);
    await first.close();
    const second = await open(path);
    expect(await second.readEntries('internal')).toMatchObject([{ name: 'a/a' }]);
    expect(await second.changesSince(revision)).toMatchObject({ revision });
    await second.close();
  });

  test('refuses to write while another program keeps the file locked, naming it, and goes on afterwards', async () => {
    const path = join(directory, 'registry.db');
    const hurried = {
      ...systemClock,
      after: (_: number, callback: () => void) => systemClock.after(0, callback),
    };
    const store = await openSqlite({ path, clock: hurried, log: silentLog });
    await store.reconcile({ sources: [sourceOf('one')], registries: [] });
    const rude = new DatabaseSync(path);
    rude.exec('begin immediate');
    await expect(store.replaceEntries(replacementOf('one', [], 'T1'))).rejects.toMatchObject({
      code: 'store/locked',
      message: `the store "${path}" is in use by another process`,
    });
    expect(await store.readStatus('one')).toMatchObject({ phase: 'failed' });
    rude.close();
    await store.replaceEntries(replacementOf('one', [], 'T1'));
    await store.close();
  });

  test('keeps a file that it has made where another process has opened it meanwhile', async () => {
    const path = join(directory, 'registry.db');
    const failing = await open(path);
    const other = await open(path);
    await failing.discard();
    await other.reconcile({ sources: [sourceOf('internal', 'managed')], registries: [] });
    await other.publish(publishOf('a/a', '1'), allowed);
    await other.close();
    const again = await open(path);
    expect(await again.readEntries('internal')).toMatchObject([{ name: 'a/a' }]);
    await again.close();
  });

  test('removes a file that it has made when it is discarded, and keeps one that was there', async () => {
    const path = join(directory, 'registry.db');
    await (await open(path)).discard();
    expect(await readdir(directory)).toEqual([]);
    await (await open(path)).close();
    await (await open(path)).discard();
    expect(await readdir(directory)).toEqual(['registry.db']);
  });

  test('refuses a schema from the future that it cannot use, and uses one that only added', async () => {
    const path = join(directory, 'registry.db');
    await (await open(path)).close();
    const database = new DatabaseSync(path);
    database.exec(`pragma user_version = ${NEWEST_SCHEMA + 1}`);
    await (await open(path)).close();
    database.exec(`update schema_version set compatible_from = ${NEWEST_SCHEMA + 1}`);
    database.close();
    await expect(open(path)).rejects.toMatchObject({
      code: 'store/newer',
      message: `the store has schema ${NEWEST_SCHEMA + 1}, this version knows ${NEWEST_SCHEMA}`,
    });
  });

  test('refuses a file that is no database', async () => {
    const path = join(directory, 'registry.db');
    await writeFile(path, 'not a database, just a line of text that is long enough to be looked at');
    await expect(open(path)).rejects.toMatchObject({ code: 'store/failed' });
  });

  test('keeps nothing under the name for in-memory', async () => {
    const store = await open(IN_MEMORY);
    await store.reconcile({ sources: [sourceOf('one')], registries: [] });
    await store.replaceEntries(replacementOf('one', [], 'T1'));
    expect(await store.readStatus('one')).toEqual(statusAt('T1'));
    await store.close();
  });
});

describe('SQLite migrations', () => {
  let database: DatabaseSync;
  beforeEach(() => {
    database = new DatabaseSync(':memory:', { enableForeignKeyConstraints: true });
  });
  afterEach(() => database.close());

  const schema = (): unknown[] =>
    database
      .prepare(`select name, sql from sqlite_schema where name <> 'schema_version' order by name`)
      .all();

  test('lead up and back down, step by step, to the same schema', async () => {
    const after: unknown[][] = [];
    for (let version = 1; version <= NEWEST_SCHEMA; version++) {
      expect(await migrateSqlite(database, () => version)).toEqual({ before: version - 1, after: version });
      after.push(database.prepare('select name from sqlite_schema order by name').all());
    }
    const newest = schema();
    await migrateSqlite(database, () => 0);
    expect(schema()).toEqual([]);
    await migrateSqlite(database, () => NEWEST_SCHEMA);
    expect(schema()).toEqual(newest);
    await migrateSqlite(database, () => 1);
    expect(database.prepare('select name from sqlite_schema order by name').all()).toEqual(after[0]);
  });

  test('keep what was synchronised under the first schema', async () => {
    await migrateSqlite(database, () => 1);
    database.exec(`insert into source values ('one', 'hash', 'T1', '{}'), ('two', null, null, null)`);
    database.exec(`insert into entry values ('one', 'server', '', 'a/a', '')`);
    await migrateSqlite(database, () => NEWEST_SCHEMA);
    expect(database.prepare('select source, content_hash, servers from sync_status').all()).toEqual([
      { source: 'one', content_hash: 'hash', servers: 1 },
    ]);
  });

  test('let programs of the schema before go on writing', async () => {
    await migrateSqlite(database, () => NEWEST_SCHEMA);
    // The statements of the program that knew schema 1.
    database.exec(`insert into source (name, content_hash, synced_at, report) values ('one', null, null, null)
      on conflict (name) do nothing`);
    database.exec(
      `insert into entry (source, kind, namespace, name, claims) values ('one', 'server', '', 'a', '')`,
    );
    database.exec(
      `insert into entry_version values ('one', 'server', '', 'a', '1', null, null, '{}', null, 'd', 'T', 'T')`,
    );
    database.exec(`update source set content_hash = 'h', synced_at = 'T', report = '{}' where name = 'one'`);
    expect(database.prepare('select count(*) as n from entry_version').get()).toEqual({ n: 1 });
    database.exec(`delete from source where name not in ('two')`);
    expect(database.prepare('select count(*) as n from entry_version').get()).toEqual({ n: 0 });
  });

  test('are taken back as a whole when a statement fails', async () => {
    database.exec('create table registry (name text)');
    await expect(migrateSqlite(database, () => NEWEST_SCHEMA)).rejects.toThrow('registry');
    expect(database.prepare('select name from sqlite_schema').all()).toEqual([{ name: 'registry' }]);
    expect(database.prepare('pragma user_version').get()).toEqual({ user_version: 0 });
  });
});
