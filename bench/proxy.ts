import { median } from './median.ts';
import { measureCalls, openSession, timesInTurns } from './proxy/calls.ts';
import { ECHO } from './proxy/echo.ts';
import { started } from './proxy/started.ts';
import type { Bench } from './row.ts';

const ROUNDS = 3;
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
    floor: 0.5,
  });
  const subjectCalls = { url: own, headers: session };
  const [bareMs, proxiedMs] = await timesInTurns(
    { url: baseline.url, headers: {} },
    subjectCalls,
    10 * seconds,
  );
  const added = median(proxiedMs) - median(bareMs);
  report({ name: 'proxy: p50 added at one connection', value: added, unit: 'ms', ceiling: 0.3 });
  await measureFrontDoor(report, { own, front, seconds });
};

/** One proxy on its own port and by the front door of the same process, in alternating rounds. */
async function measureFrontDoor(
  report: Parameters<Bench>[0],
  { own, front, seconds }: { readonly own: string; readonly front: string; readonly seconds: number },
): Promise<void> {
  const session = await openSession(own);
  const load = { connections: CONNECTIONS, seconds };
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const there = await measureCalls(own, session, load);
    const here = await measureCalls(front, session, load);
    ratios.push(here.perSecond / there.perSecond);
  }
  report({
    name: `proxy: calls by the front door at ${CONNECTIONS} connections, against its own port`,
    value: median(ratios),
    unit: 'ratio',
    floor: 0.9,
  });
}
