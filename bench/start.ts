import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { starterServers } from '../packages/core/src/catalog/starter.ts';
import { places as placesOf } from '../packages/core/src/files/places.ts';
import { saveRunConfig } from '../packages/skep/src/run-config/file.ts';
import { decodeRunConfig } from '../packages/skep/src/run-config/run-config.ts';
import { writeStatus } from '../packages/skep/src/supervisor/state.ts';
import { median } from './median.ts';
import type { Bench } from './row.ts';

const BUNDLE = path.resolve(import.meta.dirname, '../dist/skep/skep.js');
const RUNS = 20;
const LARGE = 10_000;
const THOUSANDS = 2000;
const WORKLOADS = 100;
const LARGE_RUNS = 5;

/** Commands that only look, by the bundle, against Node doing nothing: what a person, a prompt or a script waits for. */
export const startBench: Bench = async (report) => {
  if (!existsSync(BUNDLE)) throw new Error('dist/skep is missing: run "npm run build" first');
  const home = mkdtempSync(path.join(tmpdir(), 'skep-bench-start-'));
  try {
    const compare = (what: string, args: readonly string[], ceiling: number, runs = RUNS): void =>
      report({
        name: `start: skep ${what}, against node -e 0`,
        value: ratio([BUNDLE, ...args], { home, runs }),
        unit: 'ratio',
        ceiling,
      });
    compare('version', ['version'], 2);
    compare('list', ['list'], 1.6);
    compare('search', ['search', 'time'], 2);
    await saveWorkloads(home, WORKLOADS);
    compare(`list --all of ${WORKLOADS}`, ['list', '--all'], 2);
    const file = path.join(home, 'catalogue.json');
    writeFileSync(file, officialList(THOUSANDS));
    // A catalogue that changed this very moment is not indexed yet.
    await delay(3_000);
    milliseconds([BUNDLE, 'config', 'set-registry', file], home);
    compare(`search among ${THOUSANDS} from a file`, ['search', 'time'], 3);
    compare(`info among ${THOUSANDS} from a file`, ['info', 'server-7'], 3);
    writeFileSync(file, largeCatalogue());
    compare(`registry list of ${LARGE} from a file`, ['registry', 'list'], 20, LARGE_RUNS);
  } finally {
    rmSync(home, { recursive: true });
  }
};

/** Stopped ones, which nobody has to be woken for. */
async function saveWorkloads(home: string, count: number): Promise<void> {
  const places = placesOf({ env: {}, home, platform: process.platform, temp: home });
  const time = '2026-01-02T03:04:05.000Z';
  for (let n = 0; n < count; n += 1) {
    const name = `workload-${n}`;
    const config = { name, image: 'example/server:1', transport: 'stdio', port: 40_000 + n };
    await saveRunConfig(places, decodeRunConfig(config, 'bench'));
    const process = { process_id: 0, process_started: '' };
    await writeStatus(places, name, { status: 'stopped', created_at: time, updated_at: time, ...process });
  }
}

/** The built-in entries again and again, under other names. */
function servers(count: number): readonly object[] {
  const documents = starterServers().map(({ document }) => document);
  return Array.from({ length: count }, (_, index) => {
    const document = documents[index % documents.length];
    return { ...document, name: `io.example/server-${index}` };
  });
}

function largeCatalogue(): string {
  return JSON.stringify({
    version: '1.0.0',
    meta: { last_updated: '2026-01-01T00:00:00Z' },
    data: { servers: servers(LARGE) },
  });
}

/** As the official registry answers. */
function officialList(count: number): string {
  const items = servers(count).map((server) => ({ server, _meta: {} }));
  return JSON.stringify({ servers: items, metadata: { count } });
}

interface Measuring {
  readonly home: string;
  readonly runs: number;
}

/** Medians; the two alternate, so that what else the machine does meets both. */
function ratio(args: readonly string[], { home, runs }: Measuring): number {
  const nothing: number[] = [];
  const subject: number[] = [];
  // The first run of a user compiles the program.
  milliseconds(args, home);
  for (let run = 0; run < runs; run += 1) {
    nothing.push(milliseconds(['-e', '0'], home));
    subject.push(milliseconds(args, home));
  }
  return median(subject) / median(nothing);
}

function milliseconds(args: readonly string[], home: string): number {
  const env = { PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: home };
  const started = performance.now();
  const { status } = spawnSync(process.execPath, [...args], { stdio: 'ignore', env });
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}`);
  return performance.now() - started;
}
