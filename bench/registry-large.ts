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
const ROUNDS = 7;
const CONNECTIONS = 50;
/** Seconds; see registry.ts. */
const WARM_UP = 3;
const ROUND = 1;

/** Ten times the catalogue, from a store that is filled, and its pages against those of the usual size. */
export const registryLargeBench: Bench = async (report) => {
  await using opened = new AsyncDisposableStack();
  const filled = async (entries: number): Promise<RegistryFolder> => {
    const folder = opened.adopt(await registryFolder(cataloguesOf(entries)), (one) => one.remove());
    await (await folder.start()).stop();
    return folder;
  };
  const started = async (folder: RegistryFolder): Promise<ServedRegistry> =>
    opened.adopt(await folder.start(), (registry) => registry.stop());
  const folder = await filled(LARGE);
  await folder.bareStart();
  const ready = await starts(folder, { isFirst: false });
  reportStart(report, `ready with ${LARGE} entries in the store`, ready, 5000);
  const large = await started(folder);
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
  const small = await started(await filled(SMALL));
  report({
    name: `registry: list page of 100 of ${LARGE} / of ${SMALL}`,
    value: await ratio(large, small),
    unit: 'ratio',
    floor: 0.8,
  });
};

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
