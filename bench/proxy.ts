import http from 'node:http';
import { median } from './median.ts';
import { CALL, HEADERS, measureCalls, openSession, type Headers } from './proxy/calls.ts';
import { ECHO } from './proxy/echo.ts';
import { started } from './proxy/started.ts';
import type { Bench } from './row.ts';

const ROUNDS = 3;
const CONNECTIONS = 32;

/** Calls through the proxy against a bare HTTP-to-stdio loop before the same server; each is a process of its own. */
export const proxyBench: Bench = async (report, { seconds }) => {
  await using baseline = await started('bare-loop.ts', ECHO);
  await using subject = await started('skep-proxy.ts', ECHO);
  const session = await openSession(subject.url);
  const ratios: number[] = [];
  const added: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const load = { connections: CONNECTIONS, seconds };
    const bare = await measureCalls(baseline.url, {}, load);
    const proxied = await measureCalls(subject.url, session, load);
    ratios.push(proxied.perSecond / bare.perSecond);
    const bareMs = await p50Ms(baseline.url, {}, seconds);
    added.push((await p50Ms(subject.url, session, seconds)) - bareMs);
  }
  report({
    name: `proxy: stdio calls at ${CONNECTIONS} connections, against a bare loop`,
    value: median(ratios),
    unit: 'ratio',
    floor: 0.5,
  });
  report({ name: 'proxy: p50 added at one connection', value: median(added), unit: 'ms', ceiling: 0.3 });
};

/** autocannon counts whole milliseconds, so one connection is timed here. */
const p50Ms = async (url: string, headers: Headers, seconds: number): Promise<number> => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  const end = performance.now() + seconds * 500;
  try {
    while (performance.now() < end) {
      const before = performance.now();
      await call(url, headers, agent);
      times.push(performance.now() - before);
    }
  } finally {
    agent.destroy();
  }
  return median(times);
};

const call = (url: string, headers: Headers, agent: http.Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = http.request(
      url,
      { method: 'POST', headers: { ...HEADERS, ...headers }, agent },
      (reply) => {
        reply.resume().once('end', () => resolve());
      },
    );
    request.once('error', reject);
    request.end(CALL);
  });
