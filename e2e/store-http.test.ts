import { silentLog } from '@skep/core/log/log.ts';
import { storeUnderTest } from '@skep/registry/api/admin/store.fixture.ts';
import { migrationTarget } from '@skep/registry/store/schema/migrate.ts';
import { migratePostgres } from '@skep/registry/store/postgres/migrate.ts';
import { openPostgres } from '@skep/registry/store/postgres/postgres.ts';
import type { Store } from '@skep/registry/store/store.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { component, title } from './require.ts';

const postgres = await component('postgres');

/** The tests that run beside the code over a store in memory, here over PostgreSQL. */
const SUITES: Readonly<Record<string, () => Promise<unknown>>> = {
  publishing: () => import('@skep/registry/api/admin/publish/publish.test.ts'),
  'what is published': () => import('@skep/registry/api/admin/publish/payload.test.ts'),
  entries: () => import('@skep/registry/api/admin/entries/entries.test.ts'),
  registries: () => import('@skep/registry/api/admin/registries/registries.test.ts'),
  sources: () => import('@skep/registry/api/admin/sources/sources.test.ts'),
};

describe.skipIf(!postgres.available)(title('the admin API on PostgreSQL', postgres), () => {
  const inMemory = storeUnderTest.open;
  let cluster: Cluster;
  let opened = 0;
  beforeAll(async () => {
    cluster = await Cluster.start({ bin: (await npmPostgres()) ?? '' });
    const template = await cluster.createDatabase();
    await migratePostgres(cluster.place(template), (before) => migrationTarget(before, 'up', 0));
    storeUnderTest.open = async (): Promise<Store> => {
      opened += 1;
      const database = await cluster.createDatabase(template);
      return openPostgres({ ...cluster.place(database), clock: systemClock, log: silentLog });
    };
  });
  afterAll(async () => {
    storeUnderTest.open = inMemory;
    await cluster.stop();
  });

  for (const [name, load] of Object.entries(SUITES)) {
    // Each in a suite of its own, so that what one does before its tests is not done before those of the others.
    describe(name, async () => void (await load()));
  }

  test('is what they all ran on', () => {
    expect(opened).toBeGreaterThan(Object.keys(SUITES).length);
  });
});
