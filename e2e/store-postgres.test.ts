import { silentLog } from '@skep/core/log/log.ts';
import { storeContract } from '@skep/registry/store/contract/contract.ts';
import { migrationTarget } from '@skep/registry/store/schema/migrate.ts';
import { migratePostgres } from '@skep/registry/store/postgres/migrate.ts';
import { openPostgres } from '@skep/registry/store/postgres/postgres.ts';
import type { Store } from '@skep/registry/store/store.ts';
import { afterAll, beforeAll, describe } from 'vitest';
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
