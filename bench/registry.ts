import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import autocannon from 'autocannon';
import { syntheticCatalogue, syntheticName } from './registry/catalogue.ts';
import { median } from './median.ts';
import { registryFolder, stop } from './registry/served.ts';
import { reportStart, starts } from './registry/starts.ts';
import type { Bench } from './row.ts';

const ENTRIES = 10_000;
const ROUNDS = 7;
const CONNECTIONS = 50;
/** Seconds; a server that has just started is still being compiled for the first tens of thousands of requests. */
const WARM_UP = 3;

/** The registry against a bare node:http server that sends the same bytes, alternating; the median pair counts. */
export const registryBench: Bench = async (report, { seconds }) => {
  const folder = await registryFolder([syntheticCatalogue(ENTRIES)]);
  try {
    const first = await starts(folder, { isFirst: true });
    reportStart(report, `first start, ${ENTRIES} entries read, stored and served`, first, 1000);
    report({
      name: `registry: memory after the first start`,
      value: first.residentMB,
      unit: 'MB',
      ceiling: 150,
    });
    const ready = await starts(folder, { isFirst: false });
    reportStart(report, `ready with ${ENTRIES} entries in the store`, ready, 1000);
    const registry = await folder.start();
    try {
      report({
        name: `registry: memory when ready from the store`,
        value: await registry.residentMB(),
        unit: 'MB',
        ceiling: 150,
      });
      const name = encodeURIComponent(syntheticName(ENTRIES / 2));
      const list = await ratio(`${registry.url}/servers?limit=100`, seconds);
      report({ name: 'registry: list page of 100 / bare node:http', value: list, unit: 'ratio', floor: 0.8 });
      const one = await ratio(`${registry.url}/servers/${name}/versions/latest`, seconds);
      report({ name: 'registry: get one / bare node:http', value: one, unit: 'ratio', floor: 0.8 });
    } finally {
      await registry.stop();
    }
  } finally {
    await folder.remove();
  }
};

/** What the registry says, without what node:http adds to every answer by itself. */
function ownHeaders(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => !['connection', 'date', 'keep-alive'].includes(name));
}

/** Requests per second of `url`, divided by those of a bare server that sends the same bytes. */
async function ratio(url: string, seconds: number): Promise<number> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-bench-'));
  const [file, headers] = [path.join(folder, 'body.json'), path.join(folder, 'headers.json')];
  const answer = await fetch(url, { headers: { 'accept-encoding': 'identity' } });
  await writeFile(file, Buffer.from(await answer.arrayBuffer()));
  await writeFile(headers, JSON.stringify(Object.fromEntries(ownHeaders(answer.headers))));
  const child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, 'registry/bare-server.ts'), file, headers],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  try {
    const [line] = await once(child.stdout, 'data');
    const bare = `http://127.0.0.1:${String(line).trim()}/`;
    const duration = Math.max(1, seconds / 4);
    await load(url, WARM_UP);
    await load(bare, WARM_UP);
    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const baseline = await load(bare, duration);
      ratios.push((await load(url, duration)) / baseline);
    }
    return median(ratios);
  } finally {
    await stop(child);
    await rm(folder, { recursive: true });
  }
}

async function load(url: string, duration: number): Promise<number> {
  const result = await autocannon({ url, duration, connections: CONNECTIONS });
  if (result.errors > 0 || result.non2xx > 0)
    throw new Error(`${url}: ${result.errors} errors, ${result.non2xx} not 2xx`);
  return result.requests.average;
}
