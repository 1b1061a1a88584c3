import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { type NoticeRelay, noticeRelay } from './postgres/notice-relay.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, title } from './require.ts';

const postgres = await component('postgres');

/** What users are promised. */
const FOUND_WITHIN_MS = 5_000;

describe.skipIf(!postgres.available)(title('a replica that is not told of a change', postgres), () => {
  let cluster: Cluster;
  let relay: NoticeRelay;
  let folder: RegistryFolder;
  let database: string;
  let told: Running;
  let untold: Running;

  beforeAll(async () => {
    cluster = await Cluster.start({ bin: (await npmPostgres()) ?? '' });
    database = await cluster.createDatabase();
    relay = await noticeRelay(cluster.port);
    folder = await RegistryFolder.create();
    const serve = async (name: string, port: number): Promise<Running> => {
      const place = { host: '127.0.0.1', port, user: 'postgres', database, sslMode: 'disable' };
      const config = {
        sources: [{ name: 'internal', managed: {} }],
        registries: [{ name: 'team', sources: ['internal'] }],
        auth: { mode: 'anonymous' },
        database: place,
      };
      return folder.serve(await folder.write(name, JSON.stringify(config)));
    };
    told = await serve('told.yaml', cluster.port);
    untold = await serve('untold.yaml', relay.port);
  });
  afterAll(async () => {
    await folder.remove();
    await relay.close();
    await cluster.stop();
  });

  async function published(name: string): Promise<readonly [number, string]> {
    const response = await fetch(`${told.open}/team/v0.1/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, version: '1.0.0', url: 'https://a.test/mcp', description: 'x' }),
    });
    return [response.status, await response.text()];
  }

  const publish = async (name: string): Promise<void> =>
    expect(await published(name)).toEqual([201, expect.any(String)]);

  /** Milliseconds until the other replica shows it. */
  async function shown(name: string): Promise<number> {
    const start = performance.now();
    const url = `${untold.open}/team/v0.1/servers/${encodeURIComponent(name)}/versions/latest`;
    for (;;) {
      const response = await fetch(url);
      await response.text();
      if (response.status === 200) return performance.now() - start;
      if (performance.now() - start > 4 * FOUND_WITHIN_MS) throw new Error('never shown');
      await delay(10);
    }
  }

  test('finds what a lost notice was about within five seconds', async () => {
    await publish('io.acme/told');
    await shown('io.acme/told');
    for (const name of ['io.acme/first', 'io.acme/second']) {
      const before = relay.swallowed;
      relay.swallowNext();
      await publish(name);
      expect(await shown(name)).toBeLessThan(FOUND_WITHIN_MS);
      expect(relay.swallowed).toBe(before + 1);
    }
  });

  test('finds what happened while the connection that tells was lost', async () => {
    const listening = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = '${database}' and (query = 'listen skep_registry' or query like '/* prepared: write-%')`;
    const ended = await cluster.query('postgres', listening);
    expect(ended).toHaveLength(2);
    // The connection that it writes on is one of them: whoever publishes before it has noticed is told to try again.
    const status = async (): Promise<number> => (await published('io.acme/third'))[0];
    await expect.poll(status).toBeOneOf([201, 409]);
    expect(await shown('io.acme/third')).toBeLessThan(FOUND_WITHIN_MS);
    await expect.poll(() => untold.stderr()).toContain('lost the connection that tells of changes');
    // Told again soon, as before.
    await expect
      .poll(() => cluster.query('postgres', listening.replace('pg_terminate_backend(pid)', 'pid')), {
        timeout: 20_000,
      })
      .toHaveLength(2);
    await publish('io.acme/fourth');
    expect(await shown('io.acme/fourth')).toBeLessThan(FOUND_WITHIN_MS);
  });
});
