import autocannon from 'autocannon';
import { median } from './median.ts';
import { syntheticCatalogue } from './registry/catalogue.ts';
import { registryFolder, type RegistryFolder, type ServedRegistry } from './registry/served.ts';
import { reportStart, starts } from './registry/starts.ts';
import type { Bench } from './row.ts';

const LARGE = 100_000;
const SMALL = 10_000;
/** Entries of one source: a catalogue file must not be larger than 100 MiB. */
const PER_SOURCE = 50_000;
const STARTS = 3;
const ROUNDS = 7;
const CONNECTIONS = 50;
/** Seconds; see registry.ts. */
const WARM_UP = 3;
const ROUND = 1;

/** Ten times the catalogue, from a store that is filled, and its pages against those of the usual size. */
export const registryLargeBench: Bench = async (report) => {
  await using large = await filled(LARGE);
  const what = `ready with ${LARGE} entries in the store`;
  reportStart(report, what, await starts(large.folder, { rounds: STARTS, isFirst: false }), 5000);
  await using subject = await large.start();
  report({
    name: `registry: memory with ${LARGE} entries`,
    value: await subject.residentMB(),
    unit: 'MB',
    ceiling: 600,
  });
  report({
    name: `registry: most memory of a start with ${LARGE} entries in the store`,
    value: await subject.peakMB(),
    unit: 'MB',
    ceiling: 600,
  });
  await using small = await filled(SMALL);
  await using baseline = await small.start();
  report({
    name: `registry: list page of 100 of ${LARGE} / of ${SMALL}`,
    value: await ratio(subject, baseline),
    unit: 'ratio',
    floor: 0.8,
  });
};

interface Filled extends AsyncDisposable {
  readonly folder: RegistryFolder;
  start(): Promise<ServedRegistry & AsyncDisposable>;
}

/** A registry, and the least program beside it, whose stores a first start has filled. */
async function filled(entries: number): Promise<Filled> {
  const folder = await registryFolder(cataloguesOf(entries));
  try {
    await folder.bareStart();
    await (await folder.start()).stop();
  } catch (error) {
    await folder.remove();
    throw error;
  }
  return {
    folder,
    async start() {
      const registry = await folder.start();
      return { ...registry, [Symbol.asyncDispose]: () => registry.stop() };
    },
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

function cataloguesOf(entries: number): readonly string[] {
  const parts: string[] = [];
  for (let from = 0; from < entries; from += PER_SOURCE)
    parts.push(syntheticCatalogue(Math.min(PER_SOURCE, entries - from), from));
  return parts;
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
  return median(ratios);
}

async function load({ url }: ServedRegistry, duration: number): Promise<number> {
  const page = `${url}/servers?limit=100`;
  const result = await autocannon({ url: page, duration, connections: CONNECTIONS });
  if (result.errors > 0 || result.non2xx > 0)
    throw new Error(`${page}: ${result.errors} errors, ${result.non2xx} not 2xx`);
  return result.requests.average;
}
