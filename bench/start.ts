import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Bench } from './row.ts';

const BUNDLE = path.resolve(import.meta.dirname, '../dist/skep/skep.js');
const RUNS = 20;

/** `skep version` of the bundle against Node doing nothing: what a prompt or script waits for. */
export const startBench: Bench = async (report) => {
  if (!existsSync(BUNDLE)) throw new Error('dist/skep is missing: run "npm run build" first');
  const nothing: number[] = [];
  const version: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    nothing.push(milliseconds(['-e', '0']));
    version.push(milliseconds([BUNDLE, 'version']));
  }
  report({
    name: 'start: skep version, against node -e 0',
    value: median(version) / median(nothing),
    unit: 'ratio',
    ceiling: 2,
  });
};

function milliseconds(args: readonly string[]): number {
  const started = performance.now();
  const { status } = spawnSync(process.execPath, [...args], { stdio: 'ignore' });
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${String(status)}`);
  return performance.now() - started;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
