import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { addAbortSignal } from 'node:stream';
import type { Places } from '@skep/core/files/places.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readAddress, whatIsKept } from './address.ts';
import {
  readGreeting,
  readLines,
  readAnswer,
  tellNobody,
  fromFailure,
  writeLine,
  type Lines,
  type Tell,
  type Request,
} from './protocol.ts';
import { refuseForeign, whyNotPrivate } from './private-directory.ts';
import type { ProcessIdentity } from './process-identity.ts';

export interface ConnectOptions {
  readonly places: Places;
  readonly uid: number | undefined;
  readonly platform: NodeJS.Platform;
  readonly isAlive: (process: ProcessIdentity) => boolean;
  /** True when this process is in a group that the other is not, and so may reach an engine that the other may not. */
  readonly lacksGroups: (process: ProcessIdentity) => boolean;
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
 * Connects to the supervisor of this user's state directory; undefined where none is up, and where `looking` aborts before
 * it has greeted: whoever only looks ends none that hangs. Fails with
 * `supervisor/unreachable` where directories are another user's or its data lies elsewhere, with `supervisor/protocol`
 * where what answers is none.
 */
export async function connect(
  options: ConnectOptions,
  looking?: AbortSignal,
): Promise<Connection | undefined> {
  const { places, uid, platform, isAlive, end } = options;
  refuseForeign(places, uid);
  const address = readAddress(places, uid);
  if (!address) return undefined;
  // Anybody may have made it anew, where the directory for temporary files was emptied.
  if (platform !== 'win32' && whyNotPrivate(dirname(address.socket), uid) !== undefined) return undefined;
  using opened = new DisposableStack();
  const socket = opened.adopt(createConnection(address.socket), (one) => void one.destroy());
  socket.on('error', () => socket.destroy());
  if (looking) addAbortSignal(looking, socket);
  try {
    await once(socket, 'connect');
  } catch {
    // Nobody listens there.
    return undefined;
  }
  const lines = readLines(socket);
  socket.setTimeout(GREETING_MS, () => {
    if (!looking && isAlive(address)) end(address.pid, 'SIGKILL');
    socket.destroy();
  });
  const { value: first } = await lines.next().catch((error: unknown) => {
    if (error instanceof SkepError) throw error;
    // Reset: it was killed.
    return { value: undefined };
  });
  socket.setTimeout(0);
  if (first === undefined) return undefined;
  const { version, pid, started, state, data } = readGreeting(first);
  const own = whatIsKept(places);
  // The address came with a copy of another state directory.
  if (state !== own.state) return undefined;
  if (data !== own.data) {
    throw new SkepError('supervisor/unreachable', {
      message: `the supervisor of "${state}" keeps its data in "${data}", and this command in "${own.data}"`,
      hint: 'give both the same HOME or XDG_DATA_HOME',
    });
  }
  // From here on it is the caller's: an exchange ends it.
  opened.move();
  return { socket, lines, process: { pid, started }, version };
}

export interface CallOptions {
  readonly tell?: Tell;
  /** Closes the connection; the supervisor undoes a start that is under way. */
  readonly signal: AbortSignal;
}

/**
 * Sends one request and answers with its result; the connection is used up then. Fails as the supervisor did, with
 * `supervisor/unreachable` when the connection breaks, or with the signal's reason.
 */
export async function exchange(
  { socket, lines }: Connection,
  request: Request,
  { tell = tellNobody, signal }: CallOptions,
): Promise<unknown> {
  try {
    signal.throwIfAborted();
    addAbortSignal(signal, socket);
    writeLine(socket, request);
    for await (const line of lines) {
      const answer = readAnswer(line);
      if ('event' in answer) tell(answer.event);
      else if ('error' in answer) throw fromFailure(answer.error);
      else return answer.result;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SkepError) throw error;
    throw new SkepError('supervisor/unreachable', {
      message: 'the connection to the supervisor broke',
      cause: error,
    });
  } finally {
    socket.destroy();
  }
  signal.throwIfAborted();
  throw new SkepError('supervisor/unreachable', { message: 'the supervisor ended before it had answered' });
}
