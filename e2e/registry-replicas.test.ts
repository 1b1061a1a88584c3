import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startRegistryApi, type RegistryApi } from './fixtures/registry-api.ts';
import { debianPostgres, npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, title } from './require.ts';

const npm = await component('postgres');
const debian = await component('postgres-debian');

/** What several processes share: one file, or one database server. */
const STORES = [
  { label: 'one SQLite file', available: true, name: 'one SQLite file', bin: undefined },
  {
    label: 'PostgreSQL from npm',
    available: npm.available,
    name: title('PostgreSQL from npm', npm),
    bin: (await npmPostgres()) ?? '',
  },
  {
    label: 'PostgreSQL 15 of Debian',
    available: debian.available,
    name: title('PostgreSQL 15 of Debian', debian),
    bin: debianPostgres,
  },
];

interface Named {
  readonly name: string;
  readonly version: string;
}

const listed = (name: string, version = '1.0.0') => ({
  server: { name, version, description: name },
  _meta: { 'io.modelcontextprotocol.registry/official': { updatedAt: '2026-01-01T00:00:00Z' } },
});

for (const { available, name, bin } of STORES) {
  describe.skipIf(!available)(`replicas on ${name}`, () => {
    let cluster: Cluster | undefined;
    let folder: RegistryFolder;
    let storage: object;
    let upstream: RegistryApi;

    beforeAll(async () => {
      if (bin !== undefined) cluster = await Cluster.start({ bin });
    });
    afterAll(async () => {
      await cluster?.stop();
    });
    beforeEach(async () => {
      folder = await RegistryFolder.create();
      upstream = await startRegistryApi([listed('io.a/one')]);
      storage =
        cluster === undefined
          ? { storage: { path: 'registry.db' } }
          : {
              database: {
                host: '127.0.0.1',
                port: cluster.port,
                user: 'postgres',
                database: await cluster.createDatabase(),
                sslMode: 'disable',
              },
            };
    });
    afterEach(async () => {
      await folder.remove();
      await upstream.close();
    });

    /** A managed source before an api source, under the registry `all`. */
    const configuration = (file: string, interval: string, ...more: readonly object[]): Promise<string> =>
      folder.write(
        file,
        JSON.stringify({
          sources: [
            { name: 'ours', managed: {} },
            { name: 'theirs', api: { endpoint: upstream.origin }, syncPolicy: { interval } },
          ],
          registries: [{ name: 'all', sources: ['ours', 'theirs'] }, ...more],
          auth: { mode: 'anonymous' },
          ...storage,
        }),
      );

    async function serve(count: number, interval: string): Promise<readonly Running[]> {
      const config = await configuration('registry.yaml', interval);
      return Promise.all(Array.from({ length: count }, () => folder.serve(config)));
    }

    const names = async ({ open }: Running): Promise<string[]> => {
      const response = await fetch(`${open}/registry/all/v0.1/servers?limit=1000`);
      const { servers } = (await response.json()) as { servers: { server: Named }[] };
      return servers.map(({ server }) => `${server.name}@${server.version}`);
    };

    async function within(milliseconds: number, check: () => Promise<boolean>): Promise<number> {
      const start = performance.now();
      while (!(await check())) {
        if (performance.now() - start > milliseconds) throw new Error(`not within ${milliseconds} ms`);
        await delay(10);
      }
      return performance.now() - start;
    }

    const publish = ({ open }: Running, server: string, version = '1.0.0'): Promise<Response> =>
      fetch(`${open}/registry/all/v0.1/publish`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: server, version, url: 'https://x.example/mcp', description: 'x' }),
      });

    test('shows a publish on one to the same client at once, and on the other within a second', async () => {
      const [one, two] = await serve(2, '1h');
      if (one === undefined || two === undefined) throw new Error('two replicas');
      for (let round = 1; round <= 5; round += 1) {
        const [from, to] = round % 2 === 0 ? [one, two] : [two, one];
        const version = `1.${round}.0`;
        const answer = await publish(from, 'io.acme/tool', version);
        expect([answer.status, await answer.text()]).toEqual([201, expect.any(String)]);
        expect(await names(from)).toContain(`io.acme/tool@${version}`);
        await within(cluster === undefined ? 1_500 : 1_000, async () =>
          (await names(to)).includes(`io.acme/tool@${version}`),
        );
      }
      expect(await names(one)).toEqual(await names(two));
    });

    test('synchronises a source on one of three at a time, and shows all what it found', async () => {
      const replicas = await serve(3, '1s');
      upstream.requests.length = 0;
      upstream.items = [listed('io.a/one'), listed('io.a/two')];
      for (const replica of replicas) {
        await within(6_000, async () => (await names(replica)).includes('io.a/two@1.0.0'));
      }
      // Three that each looked every second would ask six times in two; chance moves every turn by a tenth.
      upstream.requests.length = 0;
      const started = performance.now();
      await within(60_000, () => Promise.resolve(upstream.requests.length >= 6));
      expect(performance.now() - started).toBeGreaterThan(3_500);
    });

    test('counts in the log of each replica what it serves, however many start together', async () => {
      for (const replica of await serve(3, '1h')) {
        const told = (): string => /^.*"msg":"serving".*$/m.exec(replica.stderr())?.[0] ?? '';
        // Written right after the readiness that was waited for.
        await expect.poll(told, { timeout: 5_000 }).not.toBe('');
        expect(JSON.parse(told())).toMatchObject({ registries: [{ name: 'all', servers: 1 }] });
      }
    });

    test('takes over soon when the replica that synchronises is killed, and never looks twice at once', async () => {
      const replicas: Running[] = [];
      for (let count = 0; count < 3; count += 1) {
        const [replica] = await serve(1, '1h');
        if (replica === undefined) throw new Error('a replica');
        await within(30_000, async () => replica.stderr().includes('source synchronised'));
        replicas.push(replica);
      }
      const [holder, ...others] = replicas;
      if (holder === undefined) throw new Error('three replicas');
      const ask = ({ open }: Running): Promise<Response> =>
        fetch(`${open}/v1/sources/theirs/sync`, { method: 'POST' });
      upstream.requests.length = 0;
      upstream.misbehaviour = { kind: 'silent' };
      expect((await ask(holder)).status).toBe(202);
      await within(20_000, async () => upstream.requests.length === 1);
      // The others are asked too, and find that somebody is at it.
      for (const other of others) expect((await ask(other)).status).toBe(202);
      upstream.items = [listed('io.a/three')];
      const killed = once(holder.child, 'exit');
      holder.child.kill('SIGKILL');
      await killed;
      expect(upstream.requests).toHaveLength(1);
      upstream.misbehaviour = undefined;
      // Ten seconds until the lease runs out, five until somebody looks again; a loaded machine takes its time.
      await within(40_000, async () => upstream.requests.length > 1);
      for (const other of others) {
        await within(20_000, async () => (await names(other)).includes('io.a/three@1.0.0'));
      }
    });

    test('keeps what a newer configuration added when a replica starts again with an older one', async () => {
      const [older] = await serve(1, '1h');
      const newer = await folder.serve(
        await configuration('newer.yaml', '1h', { name: 'more', sources: ['ours'] }),
      );
      if (older === undefined) throw new Error('a replica');
      expect((await publish(newer, 'io.acme/tool')).status).toBe(201);
      expect((await older.stop()).code).toBe(0);
      const [again] = await serve(1, '1h');
      if (again === undefined) throw new Error('a replica');
      expect(again.stderr()).toContain('another replica runs with a newer configuration');
      for (const replica of [newer, again]) {
        const response = await fetch(`${replica.open}/registry/more/v0.1/servers`);
        expect([response.status, await response.text()]).toEqual([
          200,
          expect.stringContaining('io.acme/tool'),
        ]);
      }
      expect((await newer.stop()).code).toBe(0);
      await within(30_000, async () => {
        const response = await fetch(`${again.open}/registry/more/v0.1/servers`);
        await response.text();
        return response.status === 404;
      });
      expect(await names(again)).toContain('io.acme/tool@1.0.0');
    });

    test('gives a source that was made on one replica to the others', async () => {
      const [one, two] = await serve(2, '1h');
      if (one === undefined || two === undefined) throw new Error('two replicas');
      const send = (path: string, body: object): Promise<Response> =>
        fetch(`${one.open}${path}`, {
          method: 'PUT',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      const data = JSON.stringify([{ name: 'io.inline/x', version: '1.0.0', description: 'x' }]);
      const source = await send('/v1/sources/inline', { file: { data } });
      expect([source.status, await source.text()]).toEqual([201, expect.any(String)]);
      const registry = await send('/v1/registries/more', { sources: ['inline'] });
      expect([registry.status, await registry.text()]).toEqual([201, expect.any(String)]);
      for (const replica of [one, two]) {
        await within(1_500, async () => {
          const response = await fetch(`${replica.open}/registry/more/v0.1/servers`);
          return (await response.text()).includes('io.inline/x');
        });
      }
    });
  });
}

describe('reload', () => {
  let folder: RegistryFolder;
  beforeEach(async () => {
    folder = await RegistryFolder.create();
  });
  afterEach(() => folder.remove());

  test('takes over new sources and registries on SIGHUP, and keeps the old ones when the file is wrong', async () => {
    const catalogue = (name: string): string =>
      JSON.stringify([{ name, version: '1.0.0', description: 'x' }]);
    await folder.write('a.json', catalogue('io.a/a'));
    await folder.write('b.json', catalogue('io.b/b'));
    const config = await folder.config({ a: 'a.json' });
    const running = await folder.serve(config);
    const status = async (registry: string): Promise<number> =>
      (await fetch(`${running.open}/registry/${registry}/v0.1/servers`)).status;
    const until = async (check: () => Promise<boolean> | boolean): Promise<void> => {
      for (let tries = 0; !(await check()); tries += 1) {
        if (tries > 200) throw new Error('it did not happen within 10 s');
        await delay(50);
      }
    };
    await writeFile(config, 'sources: [');
    running.child.kill('SIGHUP');
    await until(() => running.stderr().includes('the new configuration is not valid'));
    expect(await status('all')).toBe(200);
    await writeFile(
      config,
      JSON.stringify({
        sources: [{ name: 'b', file: { path: 'b.json' }, syncPolicy: { interval: '1h' } }],
        registries: [{ name: 'other', sources: ['b'] }],
        auth: { mode: 'anonymous' },
        storage: { path: 'registry.db' },
      }),
    );
    running.child.kill('SIGHUP');
    await until(async () => (await status('all')) === 404);
    await until(async () =>
      (await (await fetch(`${running.open}/registry/other/v0.1/servers`)).text()).includes('io.b/b'),
    );
    expect((await running.stop()).code).toBe(0);
  });
});
