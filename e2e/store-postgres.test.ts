import { silentLog } from '@skep/core/log/log.ts';
import { storeContract } from '@skep/registry/store/contract/contract.ts';
import { allowed, publishOf, sourceOf, steppedClock } from '@skep/registry/store/contract/fixture.ts';
import { migrationTarget } from '@skep/registry/store/schema/migrate.ts';
import { migratePostgres } from '@skep/registry/store/postgres/migrate.ts';
import { openPostgres } from '@skep/registry/store/postgres/postgres.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { Store } from '@skep/registry/store/store.ts';
import { KEPT_REVISIONS, PRUNE_EVERY } from '@skep/registry/store/writes/revisions.ts';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { debianPostgres, npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { component, title } from './require.ts';

const npm = await component('postgres');
const debian = await component('postgres-debian');

const SERVERS = [
  { label: 'PostgreSQL from npm', found: npm, bin: (await npmPostgres()) ?? '' },
  { label: 'PostgreSQL 15 of Debian', found: debian, bin: debianPostgres },
];

for (const { label, found, bin } of SERVERS) {
  describe.skipIf(!found.available)(title(`store on ${label}`, found), () => {
    let cluster: Cluster;
    let template: string;
    beforeAll(async () => {
      cluster = await Cluster.start({ bin });
      template = await cluster.createDatabase();
      await migratePostgres(cluster.place(template), (before) => migrationTarget(before, 'up', 0));
    });
    afterAll(() => cluster.stop());

    test('the record of changes is shortened also by entries that are published one by one', async () => {
      const database = await cluster.createDatabase(template);
      const store = await openPostgres({ ...cluster.place(database), clock: steppedClock(), log: silentLog });
      onTestFinished(async () => {
        await store.close();
        await cluster.dropDatabase(database);
      });
      await store.reconcile({ sources: [sourceOf('internal', 'managed')], registries: [] });
      const next = KEPT_REVISIONS + PRUNE_EVERY;
      await cluster.query(
        database,
        `update store_state set revision = ${next - 4};
         insert into change_log values (3, 'source', '', '', '', 'a'), (${PRUNE_EVERY}, 'source', '', '', '', 'b')`,
      );
      const published: number[] = [];
      for (const name of ['a/a', 'b/b', 'c/c', 'd/d', 'e/e']) {
        const { revision } = await store.publish({ ...publishOf(name, '1'), seemsNew: true }, allowed);
        published.push(revision);
      }
      expect(published).toEqual([next - 3, next - 2, next - 1, next, next + 1]);
      const [state] = await cluster.query(database, 'select revision, changes_from from store_state');
      expect(state).toEqual({ revision: `${next + 1}`, changes_from: `${PRUNE_EVERY}` });
      const left = await cluster.query(database, 'select revision from change_log order by revision');
      expect(left.map(({ revision }) => Number(revision))).toEqual(published);
    });

    test('tells since when a commit has been under way where the two share few processors', async () => {
      const database = await cluster.createDatabase(template);
      const options = { ...cluster.place(database), clock: systemClock, log: silentLog };
      const [store, other] = [
        await openPostgres({ ...options, processors: 2 }),
        await openPostgres({ ...options, processors: 4 }),
      ];
      const holder = new Client({ host: '127.0.0.1', port: cluster.port, user: 'postgres', database });
      onTestFinished(async () => {
        await holder.end();
        await Promise.all([store.close(), other.close()]);
        await cluster.dropDatabase(database);
      });
      await store.reconcile({ sources: [sourceOf('internal', 'managed')], registries: [] });
      await store.publish({ ...publishOf('a/a', '1'), seemsNew: true }, allowed);
      expect(store.committingSince?.()).toBeUndefined();
      expect(other).not.toHaveProperty('committingSince');
      await holder.connect();
      await holder.query('begin');
      await holder.query('select from store_state for update');
      const before = systemClock.elapsed();
      const published = store.publish({ ...publishOf('b/b', '1'), seemsNew: true }, allowed);
      await expect.poll(() => store.committingSince?.()).toBeGreaterThanOrEqual(before);
      await holder.query('rollback');
      await published;
      expect(store.committingSince?.()).toBeUndefined();
    });

    storeContract(label, async (clock) => {
      const database = await cluster.createDatabase(template);
      const stores: Store[] = [];
      const another = async (): Promise<Store> => {
        const store = await openPostgres({ ...cluster.place(database), clock, log: silentLog });
        stores.push(store);
        return store;
      };
      return {
        store: await another(),
        another,
        dispose: async () => {
          await Promise.all(stores.map((store) => store.close()));
          await cluster.dropDatabase(database);
        },
      };
    });
  });
}
