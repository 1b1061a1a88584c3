import { once } from 'node:events';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, title } from './require.ts';

const postgres = await component('postgres');

const PUBLISHES = 2_000;
const WRITERS = 8;
const KILLS = 6;
/** Nothing that the program says to anybody may hold it. */
const PASSWORD = 'the-password-of-the-database';
const LIMIT = { timeout: 240_000 };

const HALVES = `select count(*) as n from entry e where not exists (select 1 from entry_version v where
  v.source = e.source and v.kind = e.kind and v.namespace = e.namespace and v.name = e.name)`;

const nameOf = (index: number): string => `io.acme/server-${String(index).padStart(5, '0')}`;
const textOf = (index: number): string => `Number ${index}`;

const CONFIG = {
  sources: [{ name: 'internal', managed: {} }],
  registries: [{ name: 'team', sources: ['internal'] }],
  auth: { mode: 'anonymous' },
};

/** Clients that publish everything once between them, each entry as often as it takes until it was acknowledged. */
class Writers {
  readonly #base: () => string;
  readonly #whenReady: () => Promise<void>;
  #next = 0;
  #waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  acknowledged = 0;
  /** Publishes whose answer was lost, and which were found to be stored. */
  stored = 0;
  /** Everything else that was answered. */
  readonly failures = new Map<string, number>();

  constructor(base: () => string, whenReady: () => Promise<void>) {
    this.#base = base;
    this.#whenReady = whenReady;
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: WRITERS }, () => this.#write()));
  }

  /** Resolves when so many publishes are done. */
  async reached(count: number): Promise<void> {
    if (this.#done >= count) return;
    await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
  }

  get #done(): number {
    return this.acknowledged + this.stored;
  }

  async #write(): Promise<void> {
    while (this.#next < PUBLISHES) {
      const index = this.#next;
      this.#next += 1;
      while (!(await this.#publish(index))) await this.#whenReady();
      this.#waiting = this.#waiting.filter(({ count, resolve }) => {
        if (this.#done >= count) resolve();
        return this.#done < count;
      });
    }
  }

  async #publish(index: number): Promise<boolean> {
    const body = {
      name: nameOf(index),
      version: '1.0.0',
      url: 'https://a.test/mcp',
      description: textOf(index),
    };
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
    const answer = await fetch(`${this.#base()}/team/v0.1/publish`, request)
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      // The program was killed in the middle of this one.
      .catch(() => undefined);
    if (answer?.status === 201) this.acknowledged += 1;
    else if (answer?.status === 409 && answer.text.includes('version already exists')) this.stored += 1;
    else {
      if (answer !== undefined) {
        const seen = `${answer.status} ${answer.text}`;
        this.failures.set(seen, (this.failures.get(seen) ?? 0) + 1);
      }
      return false;
    }
    return true;
  }
}

interface Listed {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly remotes: readonly unknown[];
}

async function allServed({ open }: Running): Promise<Listed[]> {
  const listed: Listed[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const response = await fetch(`${open}/team/v0.1/servers?limit=1000&cursor=${cursor}`);
    const page: { servers: { server: Listed }[]; metadata: { nextCursor?: string } } = JSON.parse(
      await response.text(),
    );
    listed.push(...page.servers.map(({ server }) => server));
    cursor = page.metadata.nextCursor;
  }
  return listed;
}

/** Every entry once and whole, and nothing else. */
async function expectEverything(running: Running): Promise<void> {
  const served = await allServed(running);
  const expected = Array.from({ length: PUBLISHES }, (_, index) => [
    nameOf(index),
    '1.0.0',
    textOf(index),
    1,
  ]);
  expect(
    served.map(({ name, version, description, remotes }) => [name, version, description, remotes.length]),
  ).toEqual(expected);
}

async function until(what: string, check: () => Promise<boolean>): Promise<void> {
  const give = Date.now() + 60_000;
  while (!(await check())) {
    if (Date.now() > give) throw new Error(`not within a minute: ${what}`);
    await delay(20);
  }
}

const readiness = async ({ internal }: Running): Promise<number> => {
  const response = await fetch(`${internal}/readiness`).catch(() => undefined);
  await response?.text();
  return response?.status ?? 0;
};

/** Kills at moments that nobody could choose, spread over all publishes, while the writers go on. */
async function killing(writers: Writers, kill: (round: number) => Promise<void>): Promise<void> {
  const done = writers.run();
  for (let round = 0; round < KILLS; round += 1) {
    await writers.reached(Math.floor(((round + Math.random()) * PUBLISHES) / (KILLS + 1)));
    await delay(Math.random() * 20);
    await kill(round);
  }
  await done;
}

describe('publishing while something is killed', () => {
  let folder: RegistryFolder;
  beforeEach(async () => void (folder = await RegistryFolder.create()));
  afterEach(() => folder.remove());

  /** Publishes through a program that is killed and started again, over and over. */
  async function killProgram(config: string): Promise<Running> {
    let running = await folder.serve(config);
    let restarted = Promise.resolve();
    const writers = new Writers(
      () => running.open,
      () => restarted,
    );
    await killing(writers, async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      restarted = promise;
      const gone = once(running.child, 'exit');
      running.child.kill('SIGKILL');
      await gone;
      running = await folder.serve(config);
      resolve();
    });
    expect(writers.acknowledged + writers.stored).toBe(PUBLISHES);
    expect(writers.stored).toBeLessThanOrEqual(KILLS * WRITERS);
    expect([...writers.failures]).toEqual([]);
    return running;
  }

  test('loses nothing acknowledged and shows no half entry: SQLite, the program killed', LIMIT, async () => {
    const config = await folder.write(
      'registry.yaml',
      JSON.stringify({ ...CONFIG, storage: { path: 'registry.db' } }),
    );
    const running = await killProgram(config);
    await expectEverything(running);
    expect((await running.stop()).code).toBe(0);
    const raw = new DatabaseSync(path.join(folder.path, 'registry.db'));
    expect(raw.prepare(HALVES).get()).toEqual({ n: 0 });
    expect(raw.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' });
    raw.close();
  });

  describe.skipIf(!postgres.available)(title('on PostgreSQL', postgres), () => {
    let cluster: Cluster;
    let database: string;
    let config: string;
    beforeEach(async () => {
      cluster = await Cluster.start({ bin: (await npmPostgres()) ?? '', durable: true });
      database = await cluster.createDatabase();
      const { port } = cluster;
      const place = { host: '127.0.0.1', port, user: 'postgres', password: PASSWORD, database };
      config = await folder.write(
        'registry.yaml',
        JSON.stringify({ ...CONFIG, database: { ...place, sslMode: 'disable' } }),
      );
    });
    afterEach(() => cluster.stop());

    /** A replica that nobody wrote to has it all too, by itself. */
    async function expectKept(running: Running, other: Running): Promise<void> {
      await expectEverything(running);
      await until(
        'the other replica has everything',
        async () => (await allServed(other)).length === PUBLISHES,
      );
      await expectEverything(other);
      expect(await cluster.query(database, HALVES)).toEqual([{ n: '0' }]);
      for (const replica of [running, other]) {
        const { code, stderr } = await replica.stop();
        expect(code).toBe(0);
        expect(stderr).not.toContain(PASSWORD);
      }
    }

    test('loses nothing acknowledged when the program is killed', LIMIT, async () => {
      const other = await folder.serve(config);
      await expectKept(await killProgram(config), other);
    });

    test(
      'loses nothing acknowledged when the database or one of its processes is killed',
      LIMIT,
      async () => {
        const [running, other] = [await folder.serve(config), await folder.serve(config)];
        const ready = (): Promise<void> =>
          until('the program is ready again', async () => (await readiness(running)) === 200);
        const writers = new Writers(() => running.open, ready);
        await killing(writers, async (round) => {
          if (round % 2 === 1) return killBackend(cluster, database);
          await cluster.kill();
          await until('the program is not ready', async () => (await readiness(running)) === 503);
          await cluster.resume();
          await ready();
        });
        expect(writers.acknowledged + writers.stored).toBe(PUBLISHES);
        // Each kill leaves one answer open for each writer; the others were told that nothing was stored.
        expect(writers.stored).toBeLessThanOrEqual(KILLS * WRITERS);
        expect([...writers.failures.keys()]).toEqual(['503 {"error":"the store does not answer"}']);
        await expectKept(running, other);
      },
    );
  });
});

/** Kills one process that serves the program; the server then ends all of them and recovers by itself. */
async function killBackend(cluster: Cluster, database: string): Promise<void> {
  const rows = await cluster.query(
    'postgres',
    `select pid from pg_stat_activity where datname = '${database}' order by random() limit 1`,
  );
  const pid = Number(rows[0]?.['pid']);
  expect(pid).toBeGreaterThan(1);
  process.kill(pid, 'SIGKILL');
}
