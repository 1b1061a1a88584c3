import { setTimeout as pause } from 'node:timers/promises';
import {
  isRunning,
  processesLoggingBelow,
  programInside,
  sendSignal,
  type ProcessIdentity,
} from './linux-process.ts';
import { appendFile } from 'node:fs/promises';
import { GATES, type WorkloadPlaces } from './places.ts';
import { isHeld, untilReleased } from './pipes.ts';
import { readStatus, type RunState } from './records.ts';

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

/** How long the processes of a gateway may take to notice that their workload is over, in milliseconds. */
const GATE_MS = 1000;

/** Resolves when nothing of the gateway of an ended workload runs any more. */
export async function endGateway(places: WorkloadPlaces): Promise<void> {
  const isOver = () => GATES.every((one) => !isHeld(places[one]));
  await until(async () => isOver(), GATE_MS);
  if (!isOver()) await killBelow(places.directory);
}

/**
 * Resolves when a running workload is over, or the signal aborts. One that loses its gateway or its slirp4netns is ended:
 * it would go on without any way out, and whoever starts servers again gives it a new one.
 */
export async function untilOver(
  places: WorkloadPlaces,
  { init, gates }: Extract<RunState, { state: 'running' }>,
  signal: AbortSignal,
): Promise<void> {
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  const pipes = [places.life, ...gates.map((one) => places[one])];
  await Promise.race(pipes.map((one) => untilReleased(one, either))).catch(() => {});
  enough.abort();
  if (signal.aborted || !isHeld(places.life) || gates.every((one) => isHeld(places[one]))) return;
  await appendFile(
    places.log,
    'skep: what leads this server to its network ended, so the server is ended too\n',
  );
  await stopProcesses(init, 0, places.status);
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
