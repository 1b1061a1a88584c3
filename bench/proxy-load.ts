import http from 'node:http';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { median } from './median.ts';
import { CALL, HEADERS, measureCalls, openSession, p99, type Endpoint, type Headers } from './proxy/calls.ts';
import { ECHO } from './proxy/echo.ts';
import { started } from './proxy/started.ts';
import type { Bench } from './row.ts';

const ROUNDS = 3;
/** Many and short, because what else the machine does changes within seconds; of a second each. */
const SHORT_ROUNDS = 10;
const CONNECTIONS = 32;
const SESSIONS = 1_000;

/** What the steps of the chain cost, what bytes cost that are relayed, and what idle sessions do. */
export const proxyLoadBench: Bench = async (report, options) => {
  await allSteps(report, options);
  await relay(report, options);
  await sessions(report, options);
};

/** Everything that calls can pass, and how much later answers come while half of what is possible is asked for. */
async function allSteps(...[report, { seconds }]: Parameters<Bench>): Promise<void> {
  await using baseline = await started('bare-loop.ts', ECHO);
  await using plain = await started('skep-proxy.ts', ECHO);
  await using full = await started('all-steps.ts', ECHO);
  const bare = { url: baseline.url, headers: {} };
  const [plainUrl = ''] = plain.url.split(' ');
  const own = { url: plainUrl, headers: await openSession(plainUrl) };
  const [fullUrl = '', token = ''] = full.url.split(' ');
  const bearer = { Authorization: `Bearer ${token}` };
  const all = { url: fullUrl, headers: { ...bearer, ...(await openSession(fullUrl, bearer)) } };
  const rate = async ({ url, headers }: Endpoint): Promise<number> =>
    (await measureCalls(url, headers, { connections: CONNECTIONS, seconds })).perSecond;
  // What the first round compiles does not count.
  await rate(all);
  const ratios: number[] = [];
  let most = Infinity;
  for (let round = 0; round < ROUNDS; round += 1) {
    const perSecond = await rate(bare);
    ratios.push((await rate(all)) / perSecond);
    most = Math.min(most, await rate(own));
  }
  report({
    name: `proxy: stdio calls with every step at ${CONNECTIONS} connections, against a bare loop`,
    value: median(ratios),
    unit: 'ratio',
    floor: 0.3,
  });
  const added = await inTurns(
    async () => p99(await atRate(bare, most / 2)),
    async () => p99(await atRate(own, most / 2)),
    (without, within) => within - without,
  );
  report({ name: 'proxy: p99 added at half load', value: added, unit: 'ms', ceiling: 2 });
}

/** The median of what comes of two figures that are taken one after the other, each of them first in half of the rounds. */
async function inTurns(
  baseline: () => Promise<number>,
  subject: () => Promise<number>,
  compare: (baseline: number, subject: number) => number,
): Promise<number> {
  // What the first round compiles does not count.
  await baseline();
  await subject();
  const all: number[] = [];
  for (let round = 0; round < SHORT_ROUNDS; round += 1) {
    const isFirst = round % 2 === 0;
    const [first, second] = [await (isFirst ? baseline : subject)(), await (isFirst ? subject : baseline)()];
    all.push(isFirst ? compare(first, second) : compare(second, first));
  }
  return median(all);
}

/** Milliseconds of a second's calls that begin at a rate, however long the others take. */
async function atRate({ url, headers }: Endpoint, perSecond: number): Promise<readonly number[]> {
  const agent = new http.Agent({ keepAlive: true });
  const times: number[] = [];
  const pending: Promise<void>[] = [];
  const begun = performance.now();
  try {
    for (let at = 0; at < perSecond; at += 1) {
      const due = begun + (at * 1_000) / perSecond;
      // A timer counts whole milliseconds; what fell due meanwhile is sent together.
      if (performance.now() < due) await delay(1);
      pending.push(timeOf({ url, headers }, agent, due).then((ms) => void times.push(ms)));
    }
    await Promise.all(pending);
    return times;
  } finally {
    agent.destroy();
  }
}

/** From when it was due, so that a stall counts for all that it keeps waiting. */
function timeOf({ url, headers }: Endpoint, agent: http.Agent, due: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      url,
      { method: 'POST', headers: { ...HEADERS, ...headers }, agent },
      (reply) => {
        // What is refused never comes: a machine that stalls for long makes more calls due at once than are let in.
        const isAnswered = reply.statusCode === 200;
        reply.resume().once('end', () => resolve(isAnswered ? performance.now() - due : Infinity));
      },
    );
    request.once('error', reject);
    request.end(CALL);
  });
}

/** A server that speaks HTTP itself, behind the least that can stand before it and behind ours. */
async function relay(...[report]: Parameters<Bench>): Promise<void> {
  await using server = await started('http-echo.ts', []);
  await using baseline = await started('bare-relay.ts', [server.url]);
  await using subject = await started('skep-relay.ts', [server.url]);
  const headers = await openSession(subject.url);
  const load = { connections: CONNECTIONS, seconds: 1 };
  const rate = async (url: string): Promise<number> => (await measureCalls(url, headers, load)).perSecond;
  report({
    name: `proxy: calls relayed over HTTP at ${CONNECTIONS} connections, against a bare relay`,
    value: await inTurns(
      () => rate(baseline.url),
      () => rate(subject.url),
      (bare, relayed) => relayed / bare,
    ),
    unit: 'ratio',
    floor: 0.8,
  });
}

/** Sessions whose clients do nothing but listen. */
async function sessions(...[report]: Parameters<Bench>): Promise<void> {
  await using subject = await started('skep-proxy.ts', ECHO);
  const [url = ''] = subject.url.split(' ');
  await openSession(url);
  const idle = megabytes(subject.pid);
  const agent = new http.Agent({ keepAlive: true });
  try {
    for (let at = 0; at < SESSIONS; at += 1) await openStream(url, await openSession(url), agent);
    report({
      name: `proxy: memory of ${SESSIONS} sessions with open streams, above idle`,
      value: megabytes(subject.pid) - idle,
      unit: 'MB',
      ceiling: 150,
    });
  } finally {
    agent.destroy();
  }
}

function openStream(url: string, session: Headers, agent: http.Agent): Promise<void> {
  const headers = { ...session, Accept: 'text/event-stream' };
  return new Promise((resolve, reject) => {
    const request = http.get(url, { headers, agent }, (reply) => {
      reply.on('error', () => {}).resume();
      if (reply.statusCode === 200) resolve();
      else reject(new Error(`a stream was answered with ${reply.statusCode}`));
    });
    request.once('error', reject);
  });
}

/** Resident memory, proc_pid_status(5). */
function megabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1024;
}
