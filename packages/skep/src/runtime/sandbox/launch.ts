import type { ChildProcess } from 'node:child_process';
import { chmodSync, closeSync, constants, existsSync, fchownSync, openSync } from 'node:fs';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { pause } from '../pause.ts';
import type { PortBinding } from '../runtime.ts';
import type { Bubblewrap } from './bubblewrap.ts';
import { startConfined, type Confined, type ConfinedProgram } from './confine.ts';
import { bootId, identify, programInside, sendSignal } from './linux-process.ts';
import { logTail } from './log-file.ts';
import { connectNetwork, inOwnNetwork, type NetworkTools } from './own-network.ts';
import { holdPipes } from './pipes.ts';
import type { WorkloadPlaces } from './places.ts';
import { encodeRun, readStatus } from './run-record.ts';

/** How long bubblewrap may take to report the first process inside, in milliseconds. */
const LAUNCH_MS = 10_000;
const LOOK_MS = 5;

export interface Launch {
  readonly bubblewrap: Bubblewrap;
  readonly name: string;
  readonly places: WorkloadPlaces;
  readonly program: ConfinedProgram;
  /** The program speaks over the workload's pipes. */
  readonly stdio: boolean;
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
  await atomicWrite(places.run, encodeRun(run));
  const started = spawnWorkload(launching);
  const { child } = started;
  const init = await orKill(startProgram(launching, started), child, places);
  if (init !== undefined) {
    const [inside, outside] = await Promise.all([identify(init), identify(child.pid ?? 0)]);
    const processes = { ...(inside ? { init: inside } : {}), ...(outside ? { monitor: outside } : {}) };
    await atomicWrite(places.run, encodeRun({ ...run, ...processes }));
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
      ...(ownNetwork === undefined
        ? {}
        : {
            held: true,
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
 * Waits for the first process inside, connects its network, lets the program go and waits until that has taken the place
 * of bubblewrap's set-up. Undefined when bubblewrap ended before, or takes too long.
 */
async function startProgram(
  { bubblewrap, places, ownNetwork }: Launch,
  { child, release }: Confined,
): Promise<number | undefined> {
  const ended = new AbortController();
  const end = () => ended.abort();
  child.once('error', end).once('exit', end);
  const init = await look(async () => (await readStatus(places.status)).initPid, ended.signal);
  if (init === undefined) return undefined;
  if (ownNetwork !== undefined) {
    const { inherited, setpriv } = bubblewrap;
    const asRoot = setpriv !== undefined;
    await connectNetwork({ ...ownNetwork, asRoot, places, pid: child.pid ?? 0, inherited });
    release();
  }
  return look(async () => ((await programInside(init)) === undefined ? undefined : init), ended.signal);
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
