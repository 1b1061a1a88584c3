import { component, engineSocket } from '../e2e/require.ts';
import { openUser } from '../e2e/skep.ts';
import { median } from './median.ts';
import { measureCalls, openSession, type Measured } from './proxy/calls.ts';
import { echoImage } from './proxy/echo.ts';
import { started } from './proxy/started.ts';
import type { Bench } from './row.ts';

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
  const image = await echoImage();
  await using baseline = await started('bare-attach.ts', [engineSocket(), image, 'skep.bench']);
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
      });
      // Of the few calls that one connection makes, a handful decides: met where nothing else runs, and not reliably beside it.
      const unsteady = connections === 1 ? { notYet: true as const } : {};
      report({ name: `${name}, p99`, value: median(tails), unit: 'ratio', ceiling: 1.5, ...unsteady });
    }
  } finally {
    await user.end();
  }
};
