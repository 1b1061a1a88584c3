import type { ChildProcess } from 'node:child_process';
import { chmodSync, closeSync, constants, existsSync, fchownSync, openSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import type { PortBinding } from '../runtime.ts';
import type { Bubblewrap } from './confine.ts';
import { startConfined, type Confined, type ConfinedProgram } from './confine.ts';
import { bootId, identify, programInside, sendSignal } from './linux-process.ts';
import { logTail } from './log-file.ts';
import { connectNetwork, inOwnNetwork, type NetworkTools } from './own-network.ts';
import { holdPipes } from './pipes.ts';
import type { WorkloadPlaces } from './places.ts';
import { encodeRun, readStatus, type RunRecord } from './run-record.ts';

/** How long bubblewrap may take to report the first process inside, in milliseconds. */
const LAUNCH_MS = 10_000;
const LOOK_MS = 1;

export interface Launch {
  readonly bubblewrap: Bubblewrap;
  readonly name: string;
  readonly places: WorkloadPlaces;
  readonly program: ConfinedProgram;
  /** The program speaks over the workload's pipes. */
  readonly stdio: boolean;
  /** Makes complete what the program finds, while its sandbox is set up. */
  readonly complete: () => Promise<void>;
  /** Makes a network of its own for it, with these ports forwarded; absent for none, or that of the machine. */
  readonly ownNetwork?: { readonly tools: NetworkTools; readonly ports: readonly PortBinding[] };
}

/**
 * Starts a workload in its sandbox so that it outlives this program: its own session, its stdio on pipes that it holds
 * itself, its exit status written by bubblewrap into a file. Throws `runtime/start-failed`.
 */
export async function launch(launching: Launch): Promise<void> {
  const { places, name } = launching;
  const run = { bootId: await bootId(), startedAt: new Date().toISOString() };
  await removeFile(places.status);
  // Before the process exists: a launcher that dies in between must not leave a workload that looks never started.
  await record(places, run);
  const started = spawnWorkload(launching);
  const { child } = started;
  const init = await orKill(startProgram(launching, started), child, places);
  if (init !== undefined) {
    const [inside, outside] = await Promise.all([identify(init), identify(child.pid ?? 0)]);
    const processes = { ...(inside ? { init: inside } : {}), ...(outside ? { monitor: outside } : {}) };
    await record(places, { ...run, ...processes });
    return;
  }
  // A program that ended before it was seen did run; bubblewrap has written its exit code.
  if ((await readStatus(places.status)).exitCode !== undefined) return;
  await kill(child, places);
  const said = (await logTail(places.log, 2)).trim().replaceAll('\n', '; ') || 'bubblewrap gave no reason';
  throw new SkepError('runtime/start-failed', {
    message: `workload "${name}" could not be started in the sandbox: ${said}`,
  });
}

/** Says nothing any more after a crash of the machine, because nothing runs. */
function record(places: WorkloadPlaces, run: RunRecord): Promise<void> {
  return atomicWrite(places.run, encodeRun(run), { durable: false });
}

function spawnWorkload({ bubblewrap, places, program, stdio, ownNetwork }: Launch): Confined {
  const log = openLog(places.log);
  const status = openSync(places.status, 'a', 0o600);
  const life = openSync(places.life, constants.O_RDWR);
  const pipes = stdio ? holdPipes(places) : undefined;
  try {
    // The program may open its own standard streams again by name.
    for (const one of [log, pipes?.stdin, pipes?.stdout]) {
      if (one !== undefined && bubblewrap.setpriv !== undefined) {
        fchownSync(one, program.user.uid, program.user.gid);
      }
    }
    const confined = startConfined(bubblewrap, program, {
      stdio: [pipes?.stdin ?? 'ignore', pipes?.stdout ?? log, log],
      status,
      life,
      held: true,
      ...(ownNetwork === undefined
        ? {}
        : {
            within: (command) => inOwnNetwork(ownNetwork.tools, bubblewrap.setpriv !== undefined, command),
          }),
    });
    confined.child.unref();
    return confined;
  } finally {
    closeSync(log);
    closeSync(status);
    closeSync(life);
    pipes?.release();
  }
}

/** A server that holds it can shut it with its mode. */
export function openLog(file: string): number {
  if (existsSync(file)) chmodSync(file, 0o600);
  return openSync(file, 'a', 0o600);
}

/**
 * Sets up everything that the program finds, lets it go and waits until it has taken the place of bubblewrap's set-up.
 * Undefined when bubblewrap ended before, or takes too long.
 */
async function startProgram(launching: Launch, { child, release }: Confined): Promise<number | undefined> {
  const ended = new AbortController();
  const end = () => ended.abort();
  child.once('error', end).once('exit', end);
  const [init, completed] = await Promise.allSettled([
    connected(launching, child, ended.signal),
    launching.complete(),
  ]);
  // Both are over when one has failed: whoever removes the workload must not meet the other.
  if (init.status === 'rejected') throw init.reason;
  if (completed.status === 'rejected') throw completed.reason;
  const { value } = init;
  if (value === undefined) return undefined;
  release();
  return look(async () => ((await programInside(value)) === undefined ? undefined : value), ended.signal);
}

/** The first process inside, with its network. */
async function connected(
  { bubblewrap, places, ownNetwork }: Launch,
  child: ChildProcess,
  ended: AbortSignal,
): Promise<number | undefined> {
  const init = await look(async () => (await readStatus(places.status)).initPid, ended);
  if (init === undefined || ownNetwork === undefined) return init;
  const { inherited, setpriv } = bubblewrap;
  const asRoot = setpriv !== undefined;
  await connectNetwork({ ...ownNetwork, asRoot, places, pid: child.pid ?? 0, inherited });
  return init;
}

async function look(ask: () => Promise<number | undefined>, ended: AbortSignal): Promise<number | undefined> {
  for (let waited = 0; waited < LAUNCH_MS && !ended.aborted; waited += LOOK_MS) {
    const found = await ask();
    if (found !== undefined) return found;
    await pause(LOOK_MS);
  }
  return undefined;
}

async function orKill<T>(starting: Promise<T>, child: ChildProcess, places: WorkloadPlaces): Promise<T> {
  try {
    return await starting;
  } catch (error) {
    await kill(child, places);
    throw error;
  }
}

/** Ends what was begun, the first process inside before bubblewrap, which would let a waiting program go on its end. */
async function kill(child: ChildProcess, places: WorkloadPlaces): Promise<void> {
  const { initPid } = await readStatus(places.status);
  if (initPid !== undefined && child.exitCode === null) sendSignal(initPid, 'SIGKILL');
  child.kill('SIGKILL');
  await removeFile(places.run);
  await removeFile(places.status);
}
