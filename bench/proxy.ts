import { median } from './median.ts';
import { measureCalls, openSession, timesInTurns } from './proxy/calls.ts';
import { ECHO } from './proxy/echo.ts';
import { started } from './proxy/started.ts';
import type { Bench } from './row.ts';

const ROUNDS = 3;
/** Of the two addresses of one proxy: many and short, because what else the machine does changes within seconds. */
const SHORT_ROUNDS = 10;
const CONNECTIONS = 32;

/** Calls through the proxy against a bare HTTP-to-stdio loop before the same server; each is a process of its own. */
export const proxyBench: Bench = async (report, { seconds }) => {
  await using baseline = await started('bare-loop.ts', ECHO);
  await using subject = await started('skep-proxy.ts', ECHO);
  const [own = '', front = ''] = subject.url.split(' ');
  const session = await openSession(own);
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const load = { connections: CONNECTIONS, seconds };
    const bare = await measureCalls(baseline.url, {}, load);
    const proxied = await measureCalls(own, session, load);
    ratios.push(proxied.perSecond / bare.perSecond);
  }
  report({
    name: `proxy: stdio calls at ${CONNECTIONS} connections, against a bare loop`,
    value: median(ratios),
    unit: 'ratio',
    floor: 0.6,
  });
  const subjectCalls = { url: own, headers: session };
  const [bareMs, proxiedMs] = await timesInTurns(
    { url: baseline.url, headers: {} },
    subjectCalls,
    10 * seconds,
  );
  const added = median(proxiedMs) - median(bareMs);
  report({ name: 'proxy: p50 added at one connection', value: added, unit: 'ms', ceiling: 0.3 });
  await measureFrontDoor(report, own, front);
};

/** One proxy on its own port and by the front door of the same process, in alternating rounds, each of them first in half. */
async function measureFrontDoor(report: Parameters<Bench>[0], own: string, front: string): Promise<void> {
  const session = await openSession(own);
  const load = { connections: CONNECTIONS, seconds: 1 };
  const rate = async (url: string): Promise<number> => (await measureCalls(url, session, load)).perSecond;
  // What the first round compiles does not count.
  await rate(front);
  const ratios: number[] = [];
  for (let round = 0; round < SHORT_ROUNDS; round += 1) {
    const isOwnFirst = round % 2 === 0;
    const [first, second] = [await rate(isOwnFirst ? own : front), await rate(isOwnFirst ? front : own)];
    ratios.push(isOwnFirst ? second / first : first / second);
  }
  report({
    name: `proxy: calls by the front door at ${CONNECTIONS} connections, against its own port`,
    value: median(ratios),
    unit: 'ratio',
    floor: 0.9,
  });
}
