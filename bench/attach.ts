import { component, engineSocket } from '../e2e/require.ts';
import { openUser } from '../e2e/skep.ts';
import { median } from './median.ts';
import { measureCalls, openSession, p99, timesInTurns, type Endpoint, type Load } from './proxy/calls.ts';
import { echoImage } from './proxy/echo.ts';
import { started } from './proxy/started.ts';
import type { Bench } from './row.ts';

const ROUNDS = 3;
const CONNECTIONS = [1, 32, 128];
const TURNS_A_SECOND = 15;

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
    const bare = { url: baseline.url, headers: {} };
    const ours = { url, headers: await openSession(url) };
    for (const connections of CONNECTIONS) {
      const { rate, tail } =
        connections === 1
          ? await compareInTurns(ours, bare, TURNS_A_SECOND * seconds)
          : await compare(ours, bare, { connections, seconds });
      const name = `attach: calls to a container at ${connections} connection${connections === 1 ? '' : 's'}`;
      report({ name: `${name}, against a bare loop`, value: rate, unit: 'ratio', floor: 0.7 });
      report({ name: `${name}, p99`, value: tail, unit: 'ratio', ceiling: 1.5 });
    }
  } finally {
    await user.end();
  }
};

/** Ours over the bare loop's. */
interface Ratios {
  readonly rate: number;
  readonly tail: number;
}

async function compare(ours: Endpoint, bare: Endpoint, load: Load): Promise<Ratios> {
  const rates: number[] = [];
  const tails: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const ofBare = await measureCalls(bare.url, bare.headers, load);
    const ofOurs = await measureCalls(ours.url, ours.headers, load);
    rates.push(ofOurs.perSecond / ofBare.perSecond);
    tails.push(ofOurs.p99 / ofBare.p99);
  }
  return { rate: median(rates), tail: median(tails) };
}

/** One connection makes few calls, and a pause of the machine in the round of one of the two would decide which is slower. */
async function compareInTurns(ours: Endpoint, bare: Endpoint, turns: number): Promise<Ratios> {
  const [ofBare, ofOurs] = await timesInTurns(bare, ours, turns);
  return { rate: sum(ofBare) / sum(ofOurs), tail: p99(ofOurs) / p99(ofBare) };
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
