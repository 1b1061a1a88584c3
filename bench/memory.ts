import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { component } from '../e2e/require.ts';
import { openUser } from '../e2e/skep.ts';
import { measureCalls, openSession, type Headers } from './proxy/calls.ts';
import { ECHO, echoImage } from './proxy/echo.ts';
import { started } from './proxy/started.ts';
import type { Bench } from './row.ts';

const CONNECTIONS = 128;
const SAMPLE_MS = 100;

/**
 * Memory of the supervisor with one workload under load, against a bare HTTP loop before the same server under the same
 * load, and what it has given back a while later.
 */
export const memoryBench: Bench = async (report, { seconds }) => {
  const engine = await component('engine');
  if (!engine.available) {
    console.log(`memory: skipped, ${engine.reason}`);
    return;
  }
  const gate = seconds <= 1;
  const load = { calls: gate ? 20_000 : 100_000 };
  const bare = await bareMegabytes(load.calls);
  const image = await echoImage();
  const user = openUser({ SKEP_RUNTIME: 'docker' });
  try {
    const { code, stdout, stderr } = await user.skep(['run', image, '--name', `memory-${process.pid}`]);
    if (code !== 0) throw new Error(`skep run failed: ${stderr}`);
    const url = stdout.trim();
    const [pid = 0] = user.supervisors();
    const session = await openSession(url);
    const idle = megabytes(pid);
    const most = await mostUnder({ url, headers: session, calls: load.calls, pid });
    const name = `supervisor: memory during ${load.calls} calls at ${CONNECTIONS} connections`;
    report({ name: `${name}, against a bare loop`, value: most / bare, unit: 'ratio', ceiling: 1.5 });
    await delay(gate ? 15_000 : 60_000);
    report({
      name: 'supervisor: memory after it, against idle',
      value: megabytes(pid) / idle,
      unit: 'ratio',
      ceiling: 1.4,
    });
  } finally {
    await user.end();
  }
};

interface Watched {
  readonly url: string;
  readonly headers: Headers;
  readonly calls: number;
  readonly pid: number;
}

/** The most resident memory of a process while it answers so many calls. */
async function mostUnder({ url, headers, calls, pid }: Watched): Promise<number> {
  let most = 0;
  const sampling = setInterval(() => (most = Math.max(most, megabytes(pid))), SAMPLE_MS);
  try {
    await measureCalls(url, headers, { connections: CONNECTIONS, calls });
    return most;
  } finally {
    clearInterval(sampling);
  }
}

async function bareMegabytes(calls: number): Promise<number> {
  await using bare = await started('bare-loop.ts', ECHO);
  return await mostUnder({ ...bare, headers: {}, calls });
}

/** Resident memory, proc_pid_status(5). */
function megabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1024;
}
