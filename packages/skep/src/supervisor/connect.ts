import { createConnection, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Places } from '@skep/core/files/places.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readAddress, whatIsKept, type Address } from './address.ts';
import { readGreeting } from './protocol.ts';
import { readLines, type Lines } from './json-lines.ts';
import { refuseForeign, whyNotPrivate } from './private-directory.ts';
import type { ProcessIdentity } from './process-identity.ts';

export interface ConnectOptions {
  readonly places: Places;
  readonly uid: number | undefined;
  readonly platform: NodeJS.Platform;
  readonly isAlive: (process: ProcessIdentity) => boolean;
  /** Ends a process: asks it (SIGTERM), or leaves it no choice (SIGKILL). */
  readonly end: (pid: number, how: 'SIGTERM' | 'SIGKILL') => void;
}

/** To a supervisor that has greeted and waits for a request. */
export interface Connection {
  readonly socket: Socket;
  readonly lines: Lines;
  /** The supervisor's. */
  readonly process: ProcessIdentity;
  /** Of the program that it is. */
  readonly version: string;
}

/** A supervisor that does not greet for so long never will: it is ended, and its workloads are taken up by the next. */
const GREETING_MS = 20_000;

/**
 * Connects to the supervisor of this user's state directory; undefined where none is up. Fails with
 * `supervisor/unreachable` where directories are another user's or its data lies elsewhere, with `supervisor/protocol`
 * where what answers is none.
 */
export async function connect(options: ConnectOptions): Promise<Connection | undefined> {
  const { places, uid, platform } = options;
  await refuseForeign(places, uid);
  const address = await readAddress(places, uid);
  if (!address) return undefined;
  // Anybody may have made it anew, where the directory for temporary files was emptied.
  if (platform !== 'win32' && (await whyNotPrivate(dirname(address.socket), uid)) !== undefined)
    return undefined;
  const socket = await dial(address.socket);
  if (!socket) return undefined;
  const lines = readLines(socket);
  const first = await firstLine({ socket, lines, address }, options);
  if (first === undefined) return undefined;
  const { version, pid, started, state, data } = readGreeting(first);
  const own = await whatIsKept(places);
  // The address came with a copy of another state directory.
  if (state !== own.state) {
    socket.destroy();
    return undefined;
  }
  if (data !== own.data) {
    socket.destroy();
    throw new SkepError('supervisor/unreachable', {
      message: `the supervisor of "${state}" keeps its data in "${data}", and this command in "${own.data}"`,
      hint: 'give both the same HOME or XDG_DATA_HOME',
    });
  }
  return { socket, lines, process: { pid, started }, version };
}

interface Dialled {
  readonly socket: Socket;
  readonly lines: Lines;
  readonly address: Address;
}

/** Undefined when the supervisor ended meanwhile, or was ended because it does nothing any more. */
async function firstLine(
  { socket, lines, address }: Dialled,
  { isAlive, end }: ConnectOptions,
): Promise<unknown> {
  let hangs = false;
  socket.setTimeout(GREETING_MS, () => {
    hangs = true;
    socket.destroy();
  });
  try {
    const { done, value } = await lines.next();
    socket.setTimeout(0);
    if (done !== true) return value;
  } catch (error) {
    if (error instanceof SkepError) throw error;
    // Reset: it was killed.
  }
  if (hangs && isAlive(address)) end(address.pid, 'SIGKILL');
  return undefined;
}

/** Undefined when nobody listens there. */
function dial(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
    socket.once('error', () => resolve(undefined));
  });
}
