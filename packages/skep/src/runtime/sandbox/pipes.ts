import { execFile } from 'node:child_process';
import { addAbortListener } from 'node:events';
import { closeSync, constants, existsSync, openSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { AttachedInput } from '../attached-input.ts';
import type { Attachment } from '../runtime.ts';
import { notRunning } from '../workload-name.ts';
import { GATES, type WorkloadPlaces } from './places.ts';

const run = promisify(execFile);
const { O_RDONLY, O_RDWR, O_WRONLY, O_NONBLOCK } = constants;

/** Makes the FIFOs of a workload, as far as they are not there. Throws `runtime/start-failed`. */
export async function makePipes(places: WorkloadPlaces, stdio: boolean): Promise<void> {
  const all = [
    places.life,
    places.stderr,
    ...GATES.map((one) => places[one]),
    ...(stdio ? [places.stdin, places.stdout] : []),
  ];
  const missing = all.filter((one) => !existsSync(one));
  if (missing.length > 0) await makeFifos(places, missing);
}

/** Makes the pipe for what is traced. */
export async function makeTrace(places: WorkloadPlaces): Promise<void> {
  if (!existsSync(places.trace)) await makeFifos(places, [places.trace]);
}

/** Node has no call for it; the program is part of every Linux system. */
async function makeFifos(places: WorkloadPlaces, files: readonly string[]): Promise<void> {
  try {
    await run('mkfifo', ['-m', '600', '--', ...files]);
  } catch (cause) {
    throw new SkepError('runtime/start-failed', {
      message: `cannot make pipes in "${places.directory}"`,
      cause,
    });
  }
}

/** Both ends of both pipes held by one owner; fifo(7) allows read-write opening on Linux and it never blocks. */
export interface HeldPipes extends Disposable {
  readonly stdin: number;
  readonly stdout: number;
}

/**
 * Opens the pipes read-write. A workload started on such descriptors is reader and writer of each pipe itself, so it
 * sees neither end of input nor a broken pipe when the supervisor dies, and the next supervisor can attach again. The
 * descriptors stay blocking: the workload inherits that mode, and most programs expect it.
 */
export function holdPipes(places: WorkloadPlaces): HeldPipes {
  using opened = new DisposableStack();
  const hold = (file: string): number => opened.adopt(openSync(file, O_RDWR), closeSync);
  const [stdin, stdout] = [hold(places.stdin), hold(places.stdout)];
  const held = opened.move();
  return { stdin, stdout, [Symbol.dispose]: () => held.dispose() };
}

/**
 * Resolves when nobody holds a life pipe any more, or nobody did: nothing of its workload runs then, at once for one that an
 * older release started. Nobody writes to it: its end is the news. Rejects only with the signal's reason.
 */
export async function untilReleased(pipe: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const life = openHeld(pipe);
  if (life === undefined) return;
  const held = new Socket({ fd: life, readable: true, writable: false });
  held.resume();
  using _ = addAbortListener(signal, () => void held.destroy());
  await new Promise((resolve) => void held.once('close', resolve).once('error', resolve));
  signal.throwIfAborted();
}

/** Whether somebody holds that pipe. */
export function isHeld(pipe: string): boolean {
  const held = openHeld(pipe);
  if (held !== undefined) closeSync(held);
  return held !== undefined;
}

/** The reading end of a life pipe that is held; undefined when it is not, which poll(2) would never tell. */
function openHeld(pipe: string): number | undefined {
  let life;
  try {
    life = openSync(pipe, O_RDONLY | O_NONBLOCK);
    readSync(life, Buffer.alloc(1));
  } catch (error) {
    if (errnoOf(error) === 'EAGAIN') return life;
    if (errnoOf(error) !== 'ENOENT') {
      if (life !== undefined) closeSync(life);
      throw error;
    }
  }
  if (life !== undefined) closeSync(life);
  return undefined;
}

/** Attaches to pipes that somebody holds. Throws `runtime/not-running` when nobody does. */
export function attachPipes(places: WorkloadPlaces, name: string): Attachment {
  const input = openInput(places.stdin, name);
  const source = new Socket({
    fd: openSync(places.stdout, O_RDONLY | O_NONBLOCK),
    readable: true,
    writable: false,
  });
  const sink = new Socket({ fd: input, readable: false, writable: true });
  const stdin = new AttachedInput(sink);
  const close = () => {
    stdin.destroy();
    sink.destroy();
    source.destroy();
  };
  // The reading end reports the end of the workload; a failed write says the same a moment earlier.
  sink.on('error', close);
  source.once('close', close);
  return { stdin, stdout: source, close };
}

function openInput(file: string, name: string): number {
  try {
    return openSync(file, O_WRONLY | O_NONBLOCK);
  } catch (error) {
    if (errnoOf(error) !== 'ENXIO') throw error;
    throw notRunning(name);
  }
}
