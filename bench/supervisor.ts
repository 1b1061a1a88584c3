import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { TINY_SERVER } from '../e2e/fixtures/tiny-server.ts';
import { ensureTinyImage } from '../e2e/images.ts';
import { component } from '../e2e/require.ts';
import { ask, openUser, type TestUser } from '../e2e/skep.ts';
import type { Bench } from './row.ts';

const WORKLOADS = 50;
/** When they are compared with a supervisor without any. */
const FIRST = 20;
const AT_ONCE = 4;

/** Memory of the one supervisor with stdio workloads, each of which has answered a call, and which do nothing now. */
export const supervisorBench: Bench = async (report) => {
  const engine = await component('engine');
  const sandbox = await component('sandbox');
  if (!engine.available && !sandbox.available) {
    console.log('supervisor: skipped, neither a container engine nor bubblewrap is there');
    return;
  }
  const user = openUser({ SKEP_RUNTIME: engine.available ? 'docker' : 'sandbox' });
  const target = engine.available ? await ensureTinyImage(TINY_SERVER) : 'everything';
  try {
    const idle = await idleMegabytes(user);
    const names = Array.from({ length: WORKLOADS }, (_, index) => `bench-${process.pid}-${index}`);
    const start = async (count: number): Promise<number> => {
      for (const end = names.length - count; names.length > end;) {
        const group = names.splice(0, Math.min(AT_ONCE, names.length - end));
        await Promise.all(group.map((name) => runAndAsk(user, target, name)));
      }
      return megabytes(user.supervisors()[0] ?? 0);
    };
    report({
      name: `supervisor: memory with ${FIRST} stdio workloads, above idle`,
      value: (await start(FIRST)) - idle,
      unit: 'MB',
      ceiling: 150,
    });
    report({
      name: `supervisor: memory with ${WORKLOADS} stdio workloads`,
      value: await start(WORKLOADS - FIRST),
      unit: 'MB',
      ceiling: 250,
    });
  } finally {
    await user.end();
  }
};

async function runAndAsk(user: TestUser, target: string, name: string): Promise<void> {
  const { code, stdout, stderr } = await user.skep(['run', target, '--name', name]);
  if (code !== 0) throw new Error(`skep run failed: ${stderr}`);
  await ask(stdout.trim(), 'tools/list');
}

/** A supervisor with nothing to host stays for a few seconds, long enough to be looked at. */
async function idleMegabytes(user: TestUser): Promise<number> {
  const child = user.start(['supervise']);
  await delay(1_500);
  const idle = megabytes(child.pid ?? 0);
  child.kill('SIGTERM');
  await new Promise((resolve) => child.once('close', resolve));
  return idle;
}

/** Resident memory, proc_pid_status(5). */
function megabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1024;
}
