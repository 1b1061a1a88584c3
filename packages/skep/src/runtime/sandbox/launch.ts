import type { ChildProcess } from 'node:child_process';
import { closeSync, constants, fchownSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { whyNotWritten } from '@skep/core/files/write-failure.ts';
import { DEFAULT_LIMITS } from '../../permissions/limits.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import type { Mount } from '../../permissions/mounts.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { compiledAhead } from './compile-ahead.ts';
import { inGroup, type ControlGroup } from './control-groups.ts';
import { startConfined, type Bubblewrap, type Confined, type ConfinedProgram } from './confine.ts';
import { bootId, identify, programInside, sendSignal } from './linux-process.ts';
import { logTail } from './log-file.ts';
import { GATED_ENV, GATED_FILES } from './gateway.ts';
import type { Opening } from './open-network.ts';
import { insideNetwork, type OwnNetwork } from './own-network.ts';
import { openLogPipe, untilLogged, type LogPipe } from './log-pipe.ts';
import { isFull } from './own-directories.ts';
import { holdPipes } from './pipes.ts';
import type { Gate, WorkloadPlaces } from './places.ts';
import { readStatus, type RunRecord } from './records.ts';
import { APP, NODE } from './package-trees.ts';
import { forwardPort, SLIRP_FILES } from './slirp.ts';

/** How long bubblewrap may take to report the first process inside, in milliseconds. */
const LAUNCH_MS = 10_000;
const LOOK_MS = 1;

export interface WorkloadParts {
  readonly spec: WorkloadSpec;
  /** Host directory of the package tree. */
  readonly tree: string;
  /** Real path of the Node binary. */
  readonly node: string;
  /** The package's program as the sandbox sees it. */
  readonly command: readonly string[];
  readonly user: ConfinedUser;
  /** See `compiledAhead`. */
  readonly compiled: Awaited<ReturnType<typeof compiledAhead>>;
  /** A network of its own, with its ports forwarded; undefined for none, or that of the machine. */
  readonly network: OwnNetwork | undefined;
  /** Where the kernel holds its memory and processes; undefined where it does not. */
  readonly group?: ControlGroup | undefined;
}

export interface Launch extends WorkloadParts {
  /** What the server may write and finds again, which is made while bubblewrap comes up. */
  readonly state: Promise<readonly Mount[]>;
  readonly bubblewrap: Bubblewrap;
  readonly places: WorkloadPlaces;
  readonly opening: Opening;
  /** What its log is written to, where that was begun; whoever has begun it disposes of it. */
  readonly log?: LogPipe | undefined;
  /** Makes complete what the program finds, while its sandbox is set up. */
  readonly complete: () => Promise<void>;
  /** See `Tracing.within`. */
  readonly traced?: ((command: readonly string[]) => readonly string[]) | undefined;
}

/**
 * Starts a workload in its sandbox so that it outlives this program: its own session, its stdio on pipes that it holds
 * itself, its exit status written by bubblewrap into a file. Throws `runtime/start-failed`.
 */
export async function launch(launching: Launch): Promise<void> {
  const { places, spec, group } = launching;
  const run = { bootId: await bootId(), startedAt: new Date().toISOString(), ...(group && { group }) };
  await removeFile(places.status);
  await removeFile(places.exceeded);
  // What wrote the log of an earlier run.
  if (!launching.log) await untilLogged(places, undefined);
  const networkOf = await launching.opening.made;
  // Before the process exists: a launcher that dies in between must not leave a workload that looks never started.
  await record(places, run);
  const started = spawnWorkload(launching, networkOf);
  const { child, keeper } = started;
  let found;
  try {
    found = await startProgram(launching, started);
  } catch (error) {
    await kill(child, places);
    throw error;
  }
  const { init, gates } = found;
  if (init !== undefined) {
    const [inside, outside] = await Promise.all([identify(init), identify(child.pid ?? 0)]);
    const logged = keeper === undefined ? {} : { keeper };
    const processes = {
      ...logged,
      ...(inside ? { init: inside } : {}),
      ...(outside ? { monitor: outside } : {}),
    };
    await record(places, { ...run, ...processes, gates });
    return;
  }
  // A program that ended before it was seen did run; bubblewrap has written its exit code.
  if ((await readStatus(places.status)).exitCode !== undefined) return;
  // What it says goes to a file, and its first process into another, which are removed now.
  const full = await isFull(places.directory);
  await kill(child, places);
  await untilLogged(places, keeper);
  const said = (await logTail(places.log, 2)).trim().replaceAll('\n', '; ');
  const { reason, ...next } = whyNotBegun(said, full, places.directory);
  throw new SkepError('runtime/start-failed', {
    message: `workload "${spec.name}" could not be started in the sandbox: ${reason || 'bubblewrap gave no reason'}`,
    ...next,
  });
}

/** Bubblewrap itself could not write down what it had begun. */
const NOT_NOTED = /(?:^|; )bwrap: [^;]*no space left on device/i;

/**
 * Why nothing began, for the end of a message, and the next step where that is not what the message names; `said` are the last
 * lines that were said, `full` whether no block of the disk is free.
 */
export function whyNotBegun(
  said: string,
  full: boolean,
  directory: string,
): { readonly reason: string; readonly hint?: string } {
  const isForRoom = NOT_NOTED.test(said) || (full && said === '');
  return isForRoom ? whyNotWritten(directory, 'ENOSPC') : { reason: said };
}

/** Says nothing any more after a crash of the machine, because nothing runs. */
function record(places: WorkloadPlaces, run: RunRecord): Promise<void> {
  return atomicWrite(places.run, `${JSON.stringify(run)}\n`, { durable: false });
}

interface Spawned extends Confined {
  /** Process number of what writes the log. */
  readonly keeper: number | undefined;
}

function spawnWorkload(launching: Launch, networkOf: number | undefined): Spawned {
  const { bubblewrap, places, spec, network, user, group, traced } = launching;
  const asRoot = bubblewrap.setpriv !== undefined;
  using opened = new DisposableStack();
  const pipe = launching.log ?? opened.use(openLogPipe(places, bubblewrap.inherited));
  const log = pipe.descriptor;
  const status = opened.adopt(openSync(places.status, 'a', 0o600), closeSync);
  const life = opened.adopt(openSync(places.life, constants.O_RDWR), closeSync);
  const pipes = spec.stdio ? opened.use(holdPipes(places)) : undefined;
  // The program may open its own standard streams again by name.
  for (const one of [log, pipes?.stdin, pipes?.stdout]) {
    if (one !== undefined && asRoot) fchownSync(one, user.uid, user.gid);
  }
  const confined = startConfined(bubblewrap, confinedWorkload(launching), {
    mounts: launching.state.then((state) => mountsOf(launching, state)),
    stdio: [pipes?.stdin ?? 'ignore', pipes?.stdout ?? log, log],
    status,
    life,
    held: true,
    within(command) {
      const inside =
        network === undefined || networkOf === undefined
          ? command
          : insideNetwork(network.tools, { asRoot, pid: networkOf }, command);
      const grouped = group === undefined ? inside : inGroup(group, inside);
      return traced === undefined ? grouped : traced(grouped);
    },
  });
  confined.child.unref();
  return { ...confined, keeper: pipe.keeper };
}

/** One workload as a confined program: its package, the running Node, and the mounts that were asked for; without its state. */
export function confinedWorkload(parts: WorkloadParts): ConfinedProgram {
  const { spec, command, user, compiled, network, group } = parts;
  return {
    command: [...command, ...spec.args],
    env: {
      PATH: [path.posix.dirname(NODE), `${APP}/node_modules/.bin`, `${APP}/bin`, '/usr/bin', '/bin'].join(
        ':',
      ),
      NODE_ENV: 'production',
      ...compiled.env,
      ...spec.env,
      ...(network?.kind === 'gated' ? GATED_ENV : {}),
    },
    mounts: mountsOf(parts),
    network: network === undefined && spec.network === 'none' ? 'none' : 'joined',
    limits: spec.limits ?? DEFAULT_LIMITS,
    inGroup: group !== undefined,
    user,
    files: network === undefined ? {} : NETWORK_FILES[network.kind],
  };
}

function mountsOf(
  { spec, tree, node, compiled }: WorkloadParts,
  state: readonly Mount[] = [],
): readonly Mount[] {
  return [
    { source: node, target: NODE, readOnly: true },
    { source: tree, target: APP, readOnly: true },
    ...compiled.mounts,
    ...state,
    ...spec.mounts,
    ...(spec.overlays ?? []),
  ];
}

const NETWORK_FILES = { connected: SLIRP_FILES, gated: GATED_FILES } as const;

interface Started {
  /** The first process inside; undefined when bubblewrap ended before, or takes too long. */
  readonly init: number | undefined;
  /** See `openGateway` and `connectNetwork`. */
  readonly gates: readonly Gate[];
}

/** Sets up everything that the program finds, lets it go and waits until it has taken the place of bubblewrap's set-up. */
export async function startProgram(
  launching: Pick<Launch, 'state' | 'complete' | 'places'> & Connecting,
  { child, release }: Confined,
  limitMs = LAUNCH_MS,
): Promise<Started> {
  const { places, state, complete } = launching;
  const ended = new AbortController();
  const end = () => ended.abort();
  child.once('error', end).once('exit', end);
  const initPid = async (): Promise<number | undefined> => (await readStatus(places.status)).initPid;
  // It gets what it is to do once the state is there, which may take as long as a large copy does.
  const reporting = state.then(() => untilFound(initPid, ended.signal, limitMs));
  const found = [connected(launching), state.then(complete)] as const;
  // It waits for nothing else, so it need not wait for us to hear of it.
  Promise.all(found).then(release, () => {});
  const [connecting, completed] = await Promise.allSettled([...found, reporting]);
  // Both are over when one has failed: whoever removes the workload must not meet the other.
  if (completed.status === 'rejected') throw completed.reason;
  const init = await reporting;
  // Why bubblewrap ended says more than that there was nothing to connect.
  if (init === undefined) return { init, gates: [] };
  if (connecting.status === 'rejected') throw connecting.reason;
  const running = async () => ((await programInside(init)) === undefined ? undefined : init);
  return { init: await untilFound(running, ended.signal, limitMs), gates: connecting.value };
}

interface Connecting extends Pick<Launch, 'places' | 'network'> {
  readonly spec: Pick<WorkloadSpec, 'ports'>;
  readonly opening: Pick<Opening, 'connected'>;
}

/** Its network, which is connected while bubblewrap sets everything else up. */
async function connected({ places, network, spec, opening }: Connecting): Promise<readonly Gate[]> {
  const gates = await opening.connected;
  if (network?.kind === 'connected') for (const port of spec.ports) await forwardPort(places, port);
  return gates;
}

/** What `ask` finds, asked again until `ended` aborts or the time is up, however long each answer takes. */
export async function untilFound(
  ask: () => Promise<number | undefined>,
  ended: AbortSignal,
  limitMs = LAUNCH_MS,
): Promise<number | undefined> {
  const over = AbortSignal.any([ended, AbortSignal.timeout(limitMs)]);
  while (!over.aborted) {
    const found = await ask();
    if (found !== undefined) return found;
    await pause(LOOK_MS);
  }
  return undefined;
}

/** Ends what was begun: bubblewrap, and before it the first process inside, which would go on waiting for its program. */
async function kill(child: ChildProcess, places: WorkloadPlaces): Promise<void> {
  const { initPid } = await readStatus(places.status);
  if (initPid !== undefined && child.exitCode === null) sendSignal(initPid, 'SIGKILL');
  child.kill('SIGKILL');
  await removeFile(places.run);
  await removeFile(places.status);
}
