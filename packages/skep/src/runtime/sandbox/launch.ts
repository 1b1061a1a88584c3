import type { ChildProcess } from 'node:child_process';
import { closeSync, fchownSync, openSync } from 'node:fs';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { pause } from '../pause.ts';
import type { Bubblewrap } from './bubblewrap.ts';
import { startConfined, type ConfinedProgram } from './confine.ts';
import { bootId, identify, programInside } from './linux-process.ts';
import { logTail } from './log-file.ts';
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
  const child = spawnWorkload(launching);
  const init = await firstProcess(child, places.status);
  if (init !== undefined) {
    const [inside, outside] = await Promise.all([identify(init), identify(child.pid ?? 0)]);
    const processes = { ...(inside ? { init: inside } : {}), ...(outside ? { monitor: outside } : {}) };
    await atomicWrite(places.run, encodeRun({ ...run, ...processes }));
    return;
  }
  // A program that ended before it was seen did run; bubblewrap has written its exit code.
  if ((await readStatus(places.status)).exitCode !== undefined) return;
  child.kill('SIGKILL');
  await removeFile(places.run);
  await removeFile(places.status);
  const said = (await logTail(places.log, 2)).trim().replaceAll('\n', '; ') || 'bubblewrap gave no reason';
  throw new SkepError('runtime/start-failed', {
    message: `workload "${name}" could not be started in the sandbox: ${said}`,
  });
}

function spawnWorkload({ bubblewrap, places, program, stdio }: Launch): ChildProcess {
  const log = openSync(places.log, 'a', 0o600);
  const status = openSync(places.status, 'a', 0o600);
  const pipes = stdio ? holdPipes(places) : undefined;
  try {
    // The program may open its own standard streams again by name.
    for (const one of [log, pipes?.stdin, pipes?.stdout]) {
      if (one !== undefined && bubblewrap.setpriv !== undefined) {
        fchownSync(one, program.user.uid, program.user.gid);
      }
    }
    const { child } = startConfined(bubblewrap, program, {
      stdio: [pipes?.stdin ?? 'ignore', pipes?.stdout ?? log, log],
      status,
    });
    child.unref();
    return child;
  } finally {
    closeSync(log);
    closeSync(status);
    pipes?.release();
  }
}

/**
 * The first process inside, once the program has taken the place of bubblewrap's set-up. Undefined when bubblewrap ended
 * before, or takes too long.
 */
async function firstProcess(child: ChildProcess, statusFile: string): Promise<number | undefined> {
  const ended = new AbortController();
  const end = () => ended.abort();
  child.once('error', end).once('exit', end);
  for (let waited = 0; waited < LAUNCH_MS && !ended.signal.aborted; waited += LOOK_MS) {
    const { initPid } = await readStatus(statusFile);
    if (initPid !== undefined && (await programInside(initPid)) !== undefined) return initPid;
    await pause(LOOK_MS);
  }
  return undefined;
}
