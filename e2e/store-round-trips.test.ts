import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { type NoticeRelay, noticeRelay } from './postgres/notice-relay.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, title } from './require.ts';

const postgres = await component('postgres');

const MOST = 4;
const PUBLISHES = 30;

// Counted at the connection and not by a clock: the server says "ready" once for each time that it was waited for.
describe.skipIf(!postgres.available)(title('a publish on PostgreSQL', postgres), () => {
  let cluster: Cluster;
  let relay: NoticeRelay;
  let folder: RegistryFolder;
  let registry: Running;
  let database: string;

  beforeAll(async () => {
    cluster = await Cluster.start({ bin: (await npmPostgres()) ?? '' });
    relay = await noticeRelay(cluster.port);
    folder = await RegistryFolder.create();
    database = await cluster.createDatabase();
    const config = {
      sources: [{ name: 'internal', managed: {} }],
      registries: [{ name: 'team', sources: ['internal'] }],
      auth: { mode: 'anonymous' },
      database: { host: '127.0.0.1', port: relay.port, user: 'postgres', database, sslMode: 'disable' },
    };
    registry = await folder.serve(await folder.write('registry.yaml', JSON.stringify(config)));
  });
  afterAll(async () => {
    await folder.remove();
    await relay.close();
    await cluster.stop();
  });

  async function publish(path: string, body: object): Promise<void> {
    const response = await fetch(`${registry.open}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect([response.status, await response.text()]).toEqual([201, expect.any(String)]);
  }

  /** Of the usual publish: a few also see the looks for lost notices and the signs of life, which come by the clock. */
  async function tripsOf(one: (index: number) => Promise<void>): Promise<number> {
    await one(-1);
    const trips: number[] = [];
    for (let index = 0; index < PUBLISHES; index += 1) {
      const before = relay.roundTrips;
      await one(index);
      trips.push(relay.roundTrips - before);
    }
    return trips.toSorted((a, b) => a - b)[PUBLISHES / 2] ?? Number.NaN;
  }

  const server = { description: 'x', remotes: [{ type: 'streamable-http', url: 'https://a.test/mcp' }] };

  test('waits for the database once, and reads nothing back, for new entries', async () => {
    const trips = await tripsOf((index) =>
      publish('/team/v0.1/publish', { ...server, name: `io.a/n${index}`, version: '1.0.0' }),
    );
    expect(trips).toBe(1);
  });

  test('hears of its commit where it is answered, so that nobody else is woken for a new entry', async () => {
    const connections: number[] = [];
    for (let index = 0; index < PUBLISHES; index += 1) {
      relay.spokenOn();
      await publish('/team/v0.1/publish', { ...server, name: `io.b/n${index}`, version: '1.0.0' });
      connections.push(relay.spokenOn());
    }
    // The usual publish again.
    expect(connections.toSorted((a, b) => a - b)[PUBLISHES / 2]).toBe(1);
  });

  test('and four times at most for further versions of one entry, which are served at once', async () => {
    const trips = await tripsOf((index) =>
      publish('/v1/entries', {
        server: { ...server, name: 'io.a/one', version: `1.${index + 1}.0` },
      }),
    );
    expect(trips).toBeLessThanOrEqual(MOST);
    const response = await fetch(`${registry.open}/team/v0.1/servers/io.a%2Fone/versions`);
    const { servers } = (await response.json()) as { servers: { _meta: object; server: object }[] };
    expect(servers).toHaveLength(PUBLISHES + 1);
    const latest = servers.filter((item) => JSON.stringify(item._meta).includes('"isLatest":true'));
    expect(latest.map((item) => item.server)).toMatchObject([{ version: `1.${PUBLISHES}.0` }]);
  });

  // On one or two processors reads wait a moment for a commit; on more they never do.
  test('keeps nobody from reading while the database does not get to it', async () => {
    const other = new Client({ host: '127.0.0.1', port: cluster.port, user: 'postgres', database });
    await other.connect();
    try {
      await other.query('begin');
      await other.query('select from store_state for update');
      let isAnswered = false;
      const body = { ...server, name: 'io.c/held', version: '1.0.0' };
      const held = publish('/team/v0.1/publish', body).then(() => (isAnswered = true));
      const waiting = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'`;
      await expect.poll(async () => (await other.query<{ n: number }>(waiting)).rows[0]?.n).toBe(1);
      for (let index = 0; index < PUBLISHES; index += 1) {
        const lists = [1, 2, 3].map((limit) => fetch(`${registry.open}/team/v0.1/servers?limit=${limit}`));
        expect((await Promise.all(lists)).map(({ status }) => status)).toEqual([200, 200, 200]);
      }
      expect(isAnswered).toBe(false);
      await other.query('rollback');
      await held;
    } finally {
      await other.end();
    }
  });
});
