import { createConnection, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { errnoOf } from '@skep/core/files/errno.ts';
import { withLock } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import type { Clock } from './clock.ts';
import { tellNobody, type Tell } from './events.ts';
import type { Endpoint } from './host.ts';
import { ensurePrivate } from './private-directory.ts';
import { answerSchema, fromFailure, greetingSchema, readLines, writeLine, type Request } from './protocol.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { spawnSupervisor, type Program } from './spawn-supervisor.ts';

export interface ClientOptions {
  readonly places: Places;
  readonly uid: number | undefined;
  readonly program: Program;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly isAlive: (process: ProcessIdentity) => boolean;
}

export interface CallOptions {
  readonly tell?: Tell;
  /** Closes the connection; the supervisor undoes a start that is under way. */
  readonly signal: AbortSignal;
}

const START_MS = 15_000;
const POLL_MS = 20;

const readinessSchema = z.discriminatedUnion('is', [
  z.object({ is: z.literal('answered'), server: z.string().exactOptional() }),
  z.object({ is: z.enum(['silent', 'unchecked']) }),
]);
const endpointSchema = z.object({
  url: z.string(),
  port: z.number(),
  readiness: readinessSchema.exactOptional(),
});
const stoppedSchema = z.object({ stopped: z.boolean() });

/** Talks to this user's supervisor, starting it where a call needs one. */
export class SupervisorClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Starts a saved workload and waits until it can be used. A supervisor that dies meanwhile is started again, once. */
  async start(name: string, options: CallOptions): Promise<Endpoint> {
    const request = { op: 'start', name } as const;
    try {
      return endpointSchema.parse(await this.#callStarting(request, options));
    } catch (error) {
      if (!hasCode(error, 'supervisor/unreachable') || options.signal.aborted) throw error;
      return endpointSchema.parse(await this.#callStarting(request, options));
    }
  }

  /** False when it was not running. */
  async stop(name: string, graceMs: number, options: CallOptions): Promise<boolean> {
    return stoppedSchema.parse(await this.#callStarting({ op: 'stop', name, graceMs }, options)).stopped;
  }

  async remove(name: string, options: CallOptions): Promise<void> {
    await this.#callStarting({ op: 'remove', name }, options);
  }

  /** Waits until everything that should run is hosted again, starting the supervisor for it. */
  async settle(options: CallOptions): Promise<void> {
    await this.#callStarting({ op: 'settle' }, options);
  }

  /** Ends a supervisor that hosts nothing and waits until its process is gone; fine when there is none. */
  async rest(options: CallOptions): Promise<void> {
    const found = await this.#reach(options.signal);
    if (!found) return;
    const { socket, lines, process } = found;
    await exchange(socket, lines, { op: 'rest' }, options);
    const deadline = this.#options.clock.now().getTime() + START_MS;
    while (this.#options.isAlive(process) && this.#options.clock.now().getTime() < deadline) {
      await this.#options.clock.sleep(POLL_MS, options.signal);
    }
  }

  async #callStarting(request: Request, options: CallOptions): Promise<unknown> {
    const { socket, lines } = await this.#reachStarting(options.signal);
    return exchange(socket, lines, request, options);
  }

  async #reachStarting(signal: AbortSignal): Promise<Connection> {
    const { places, uid, clock } = this.#options;
    const found = await this.#reach(signal);
    if (found) return found;
    await ensurePrivate(dirname(places.supervisorSocket), uid);
    const lock = join(places.locksDir, 'supervisor-start.lock');
    // Of many commands at once one starts it, the others wait and find it.
    return withLock(lock, { waitMs: START_MS, what: 'starting the supervisor', signal }, async () => {
      const meanwhile = await this.#reach(signal);
      if (meanwhile) return meanwhile;
      const spawned = await spawnSupervisor({ ...this.#options, logPath: places.supervisorLog });
      let exitCode: number | undefined;
      const watched = spawned.exited.then((code) => (exitCode = code));
      watched.catch(() => (exitCode = 1));
      const deadline = clock.now().getTime() + START_MS;
      while (clock.now().getTime() < deadline) {
        const up = await this.#reach(signal);
        if (up) return up;
        if (exitCode !== undefined && exitCode !== 0) break;
        await clock.sleep(POLL_MS, signal);
      }
      throw new SkepError('supervisor/unreachable', {
        message: 'the Skep supervisor did not come up',
        hint: `see "${places.supervisorLog}"`,
      });
    });
  }

  /** A connection to a supervisor of this version; one of another version is asked to retire, its workloads run on. */
  async #reach(signal: AbortSignal): Promise<Connection | undefined> {
    const { places, program, uid } = this.#options;
    const socket = await dial(places.supervisorSocket);
    if (!socket) return undefined;
    await ensurePrivate(dirname(places.supervisorSocket), uid);
    const lines = readLines(socket);
    const first = await lines.next();
    // Closed before its greeting: it was about to end.
    if (first.done) return undefined;
    const greeting = greetingSchema.safeParse(first.value);
    if (!greeting.success) throw new SkepError('supervisor/protocol');
    const { version, pid, started } = greeting.data;
    if (version === program.version) return { socket, lines, process: { pid, started } };
    await exchange(socket, lines, { op: 'retire' }, { signal });
    return undefined;
  }
}

interface Connection {
  readonly socket: Socket;
  readonly lines: AsyncGenerator<unknown, void, undefined>;
  /** The supervisor's. */
  readonly process: ProcessIdentity;
}

function dial(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
    socket.once('error', (error) => {
      const errno = errnoOf(error);
      if (errno === 'ENOENT' || errno === 'ECONNREFUSED') return resolve(undefined);
      reject(
        new SkepError('supervisor/unreachable', { message: `cannot connect to "${path}"`, cause: error }),
      );
    });
  });
}

async function exchange(
  socket: Socket,
  lines: AsyncGenerator<unknown, void, undefined>,
  request: Request,
  { tell = tellNobody, signal }: CallOptions,
): Promise<unknown> {
  const cut = (): void => {
    socket.destroy();
  };
  signal.addEventListener('abort', cut, { once: true });
  try {
    signal.throwIfAborted();
    writeLine(socket, request);
    for await (const line of lines) {
      const answer = answerSchema.safeParse(line);
      if (!answer.success) throw new SkepError('supervisor/protocol', { cause: answer.error });
      if ('event' in answer.data) tell(answer.data.event);
      else if ('error' in answer.data) throw fromFailure(answer.data.error);
      else return answer.data.result;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SkepError) throw error;
    throw new SkepError('supervisor/unreachable', {
      message: 'the connection to the supervisor broke',
      cause: error,
    });
  } finally {
    signal.removeEventListener('abort', cut);
    socket.destroy();
  }
  signal.throwIfAborted();
  throw new SkepError('supervisor/unreachable', { message: 'the supervisor ended before it had answered' });
}
