import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import autocannon from 'autocannon';
import { syntheticServer } from './registry/catalogue.ts';
import { type ServedRegistry, startRegistry } from './registry/served.ts';
import type { Bench } from './row.ts';

const LARGE = 100_000;
const SMALL = 10_000;
/** Entries of one source: a catalogue file must not be larger than 100 MiB. */
const PER_SOURCE = 50_000;
const ROUNDS = 7;
const CONNECTIONS = 50;
/** Seconds; see registry.ts. */
const WARM_UP = 3;
const ROUND = 1;

/** Ten times the catalogue, from a store that is filled, and its pages against those of the usual size. */
export const registryLargeBench: Bench = async (report) => {
  const large = await restarted(LARGE);
  try {
    report({
      name: `registry: ready with ${LARGE} entries in the store`,
      value: large.readyMs,
      unit: 'ms',
      ceiling: 5000,
    });
    report({
      name: `registry: memory with ${LARGE} entries`,
      value: await large.residentMB(),
      unit: 'MB',
      ceiling: 600,
    });
    report({
      name: `registry: most memory of a start with ${LARGE} entries in the store`,
      value: await large.peakMB(),
      unit: 'MB',
      ceiling: 600,
    });
    const small = await restarted(SMALL);
    try {
      report({
        name: `registry: list page of 100 of ${LARGE} / of ${SMALL}`,
        value: await ratio(large, small),
        unit: 'ratio',
        floor: 0.8,
      });
    } finally {
      await small.stop();
    }
  } finally {
    await large.stop();
  }
};

/** A registry with so many entries that a first start has stored. */
async function restarted(entries: number): Promise<ServedRegistry> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-bench-'));
  const removed = (): Promise<void> => rm(folder, { recursive: true });
  try {
    const config = await writeConfig(folder, entries);
    const first = await startRegistry(config);
    await first.stop();
    const registry = await startRegistry(config);
    const stop = async (): Promise<void> => {
      await registry.stop();
      await removed();
    };
    return { ...registry, stop };
  } catch (error) {
    await removed();
    throw error;
  }
}

async function writeConfig(folder: string, entries: number): Promise<string> {
  const sources = [];
  for (let from = 0; from < entries; from += PER_SOURCE) {
    const length = Math.min(PER_SOURCE, entries - from);
    const servers = Array.from({ length }, (_, index) => syntheticServer(from + index));
    const name = `from-${from}`;
    const file = { path: `${name}.json` };
    const meta = { last_updated: '2026-01-01T00:00:00Z' };
    await writeFile(
      path.join(folder, file.path),
      JSON.stringify({ version: '1.0.0', meta, data: { servers } }),
    );
    sources.push({ name, file, syncPolicy: { interval: '1h' } });
  }
  const config = path.join(folder, 'registry.yaml');
  await writeFile(
    config,
    JSON.stringify({
      sources,
      registries: [{ name: 'bench', sources: sources.map(({ name }) => name) }],
      auth: { mode: 'anonymous' },
      storage: { path: 'registry.db' },
    }),
  );
  return config;
}

/** Pages per second of one registry over those of another: the median of alternating rounds. */
async function ratio(subject: ServedRegistry, baseline: ServedRegistry): Promise<number> {
  await load(subject, WARM_UP);
  await load(baseline, WARM_UP);
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const base = await load(baseline, ROUND);
    ratios.push((await load(subject, ROUND)) / base);
  }
  return ratios.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
}

async function load({ url }: ServedRegistry, duration: number): Promise<number> {
  const page = `${url}/servers?limit=100`;
  const result = await autocannon({ url: page, duration, connections: CONNECTIONS });
  if (result.errors > 0 || result.non2xx > 0)
    throw new Error(`${page}: ${result.errors} errors, ${result.non2xx} not 2xx`);
  return result.requests.average;
}
