import { setTimeout as pause } from 'node:timers/promises';
import {
  isRunning,
  processesLoggingBelow,
  programInside,
  sendSignal,
  type ProcessIdentity,
} from './linux-process.ts';
import { readStatus } from './records.ts';

const LOOK_MS = 20;
/** How long the kernel and bubblewrap may take to clear up after SIGKILL, in milliseconds. */
const KILL_MS = 5000;

/**
 * TERM to the program, then KILL to the first process of its namespace, with which the kernel ends all others. Resolves
 * when nothing of the workload runs any more and bubblewrap has written the exit status.
 */
export async function stopProcesses(
  init: ProcessIdentity,
  graceMs: number,
  statusFile: string,
): Promise<void> {
  if (graceMs > 0) {
    let asked = false;
    await until(async () => {
      asked ||= await askToEnd(init);
      return !(await isRunning(init));
    }, graceMs);
  }
  if (await isRunning(init)) sendSignal(init.pid, 'SIGKILL');
  await until(async () => !(await isRunning(init)), KILL_MS);
  await until(async () => (await readStatus(statusFile)).exitCode !== undefined, 1000);
}

/** KILL to everything that logs below `directory`, for what no record tells about. */
export async function killBelow(directory: string): Promise<void> {
  await until(async () => {
    const left = await processesLoggingBelow(directory);
    for (const pid of left) sendSignal(pid, 'SIGKILL');
    return left.length === 0;
  }, KILL_MS);
}

/**
 * The first process is bubblewrap's reaper, which ignores TERM; the program is its child. False while there is none
 * yet, in the first moments of a workload.
 */
async function askToEnd(init: ProcessIdentity): Promise<boolean> {
  const program = await programInside(init.pid);
  return program !== undefined && sendSignal(program, 'SIGTERM');
}

async function until(condition: () => Promise<boolean>, ms: number): Promise<void> {
  for (let waited = 0; waited < ms && !(await condition()); waited += LOOK_MS) await pause(LOOK_MS);
}
