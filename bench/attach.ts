import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { ensureScriptImage } from '../e2e/images.ts';
import { component, engineSocket } from '../e2e/require.ts';
import { openUser } from '../e2e/skep.ts';
import { measureCalls, openSession, type Measured } from './proxy/calls.ts';
import type { Bench } from './row.ts';

const folder = path.join(import.meta.dirname, 'proxy');
const ROUNDS = 3;
const CONNECTIONS = [1, 32, 128];

/**
 * Calls through `skep run` of an image against a bare HTTP loop on the engine's attach stream of the same image: both
 * pay for the engine, the difference is ours.
 */
export const attachBench: Bench = async (report, { seconds }) => {
  const engine = await component('engine');
  if (!engine.available) {
    console.log(`attach: skipped, ${engine.reason}`);
    return;
  }
  const echo = stripTypeScriptTypes(readFileSync(path.join(folder, 'echo-server.ts'), 'utf8'));
  const image = await ensureScriptImage('skep-test/echo:1', echo);
  await using baseline = await startBare(image);
  const user = openUser({ SKEP_RUNTIME: 'docker' });
  try {
    const { code, stdout, stderr } = await user.skep(['run', image, '--name', `attach-${process.pid}`]);
    if (code !== 0) throw new Error(`skep run failed: ${stderr}`);
    const url = stdout.trim();
    const session = await openSession(url);
    for (const connections of CONNECTIONS) {
      const rates: number[] = [];
      const tails: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const load = { connections, seconds };
        const bare: Measured = await measureCalls(baseline.url, {}, load);
        const ours: Measured = await measureCalls(url, session, load);
        rates.push(ours.perSecond / bare.perSecond);
        tails.push(ours.p99 / bare.p99);
      }
      const name = `attach: calls to a container at ${connections} connection${connections === 1 ? '' : 's'}`;
      report({
        name: `${name}, against a bare loop`,
        value: median(rates),
        unit: 'ratio',
        floor: 0.7,
        notYet: true,
      });
      report({ name: `${name}, p99`, value: median(tails), unit: 'ratio', ceiling: 1.5, notYet: true });
    }
  } finally {
    await user.end();
  }
};

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function startBare(image: string): Promise<AsyncDisposable & { readonly url: string }> {
  const args = [path.join(folder, 'bare-attach.ts'), engineSocket(), image, 'skep.bench'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  return {
    url: String(url),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
