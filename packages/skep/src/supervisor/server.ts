import { once } from 'node:events';
import type { Socket } from 'node:net';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { openDoor, type Door, type DoorOptions } from './door.ts';
import {
  toFailure,
  readRequest,
  readLines,
  writeLine,
  type Tell,
  type Greeting,
  type Request,
} from './protocol.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { isWorkloadName } from '../settings/workload-name.ts';
import type { FrontDoor } from './front-state.ts';
import type { Host } from './host.ts';
import type { Endpoint } from './protocol.ts';
import type { Resume } from './resume.ts';

export interface ServerOptions extends Omit<DoorOptions, 'onConnection'> {
  readonly greeting: Greeting;
  readonly host: Host;
  readonly resume: Resume;
  /** Carries out `skep run` for a command; see the operation `run`. */
  readonly run: (request: RunOperation, ways: RunWays) => Promise<Endpoint>;
  /** How the front door stands, once it was tried; absent where there is none. */
  readonly front?: () => Promise<FrontDoor>;
  /** How long to stay with nothing to host and nobody connected, milliseconds. */
  readonly lingerMs: number;
  /** False when another process may be the supervisor by now, so that this one has to end. */
  readonly isTheOne: () => Promise<boolean>;
  /** Called once clients are answered. */
  readonly onOpen: () => void;
  /** Ends the server; workloads run on. */
  readonly signal: AbortSignal;
}

/** A run as a command asks for it. */
export type RunOperation = Extract<Request, { readonly op: 'run' }>;

export interface RunWays {
  readonly tell: Tell;
  /** Aborts when the command has gone; with `supervisor/unreachable` when this one ends. Nothing is told after it. */
  readonly signal: AbortSignal;
}

/** How often to look whether clients still find the socket, milliseconds; they wait longer. */
const LOOK_MS = 1_000;

/**
 * Answers clients until the signal aborts, a client retires it, or nothing is left to host. Only this user reaches the
 * socket: its directory is 0700 and the socket 0600.
 */
export async function serve(options: ServerOptions): Promise<void> {
  const { signal, log } = options;
  const ending = new AbortController();
  const sockets = new Set<Socket>();
  /** Before a client hears that this supervisor ends: whoever it starts then must not take this one for the one. */
  let leave = (): Promise<void> => Promise.resolve();
  const onConnection = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', (error) => log.debug({ err: error }, 'a client connection broke'));
    void converse(socket, { options, ending, leave: () => leave() });
  };
  const door = await openDoor({ ...options, onConnection });
  const stopLooking = keepOpen(door, options, ending);
  leave = async () => {
    await stopLooking();
    await door.close();
  };
  options.onOpen();
  const stopLingering = endWhenIdle(options, sockets, ending);
  try {
    const end = AbortSignal.any([signal, ending.signal]);
    if (!end.aborted) await once(end, 'abort');
  } finally {
    ending.abort();
    stopLingering();
    await leave();
    await cut(sockets);
  }
}

/** The function it returns ends the looking and waits for a look that is under way. */
function keepOpen(door: Door, options: ServerOptions, ending: AbortController): () => Promise<void> {
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    try {
      if (await options.isTheOne()) await door.mend();
      else ending.abort();
    } catch (error) {
      options.log.warn({ err: error }, 'the socket could not be looked after');
    }
  };
  const timer = setInterval(() => {
    looking ??= look().finally(() => (looking = undefined));
  }, LOOK_MS);
  return async () => {
    clearInterval(timer);
    await looking;
  };
}

async function converse(socket: Socket, serving: Omit<Turn, 'gone' | 'over'>): Promise<void> {
  const { options, ending } = serving;
  const [gone, over] = [new AbortController(), new AbortController()];
  const leave = (): void => {
    const reason = new SkepError('supervisor/unreachable', { message: 'it ends' });
    for (const one of [gone, over]) one.abort(reason);
  };
  ending.signal.addEventListener('abort', leave);
  if (ending.signal.aborted) leave();
  socket.on('close', () => {
    ending.signal.removeEventListener('abort', leave);
    gone.abort(new SkepError('run/cancelled', { message: 'its start was interrupted', hint: '' }));
  });
  writeLine(socket, options.greeting);
  try {
    // Whoever speaks out of turn is told so on the same connection.
    for await (const line of readLines(socket, { destroyOnReturn: false })) {
      void answer(socket, readRequest(line), { ...serving, gone: gone.signal, over: over.signal });
    }
  } catch (error) {
    options.log.warn({ err: error }, 'a client spoke out of turn');
    writeLine(socket, { error: toFailure(error) });
    socket.destroySoon();
  }
}

interface Turn {
  readonly options: ServerOptions;
  readonly ending: AbortController;
  /** Ends listening. */
  readonly leave: () => Promise<void>;
  /** Aborts when the client has gone; see `RunWays`. */
  readonly gone: AbortSignal;
  /** Aborts when this one ends, and not before. */
  readonly over: AbortSignal;
}

async function answer(socket: Socket, request: Request, turn: Turn): Promise<void> {
  let last = false;
  try {
    const result = await perform(socket, request, turn);
    last = result['ending'] === true;
    if (last) await turn.leave();
    writeLine(socket, { result });
  } catch (error) {
    if (!hasCode(error, 'supervisor/not-here')) {
      turn.options.log.warn({ op: request.op, ...factsOf(error, request) }, 'a request failed');
    }
    writeLine(socket, { error: toFailure(error) });
  }
  socket.end();
  // Only now: ending cuts connections, and the answer must be on its way first.
  if (last) turn.ending.abort();
}

/** What is wrong with a command line repeats what was typed, a secret perhaps: that is for the terminal it came from. */
function factsOf(error: unknown, { op }: Request): object {
  return op === 'run' && error instanceof SkepError ? { code: error.code } : { err: error };
}

type Result = Readonly<Record<string, unknown>>;

async function perform(socket: Socket, request: Request, turn: Turn): Promise<Result> {
  const { options, gone } = turn;
  const { host, resume } = options;
  const tell: Tell = (event) => {
    if (!gone.aborted) writeLine(socket, { event });
  };
  switch (request.op) {
    case 'start': {
      const { name, movable, secrets, begunBy, config } = request;
      const starting = { how: 'start', tell, signal: gone, movable, secrets, begunBy } as const;
      if (config === undefined) return withFront(await host.start(name, starting), options);
      const changed = { ...starting, signal: turn.over, config: await readConfig(name, config) };
      return withFront(await finishing(name, host.start(name, changed), resume), options);
    }
    case 'run':
      return withFront(await options.run(request, { tell, signal: gone }), options);
    case 'stop':
      return { stopped: await finishing(request.name, host.stop(request.name, request.graceMs), resume) };
    case 'remove':
      return { stays: await finishing(request.name, host.remove(request.name, request), resume) };
    case 'counts':
      return { counts: host.toolCounts() };
    case 'settle':
      await resume.again();
      return {};
    case 'rest':
      await host.ended();
      return { ending: host.busyWith.length === 0 && !(await resume.hasLeft()) };
    case 'retire':
      return { ending: true };
    default:
      throw new SkepError('supervisor/protocol', { message: 'the request is not known' });
  }
}

/** What an engine that went away cut short is finished when it is back, whether the person asks again or not. */
async function finishing<T>(name: string, work: Promise<T>, resume: Resume): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isWorkloadName(name)) resume.finish(name);
    throw error;
  }
}

async function readConfig(name: string, value: object): Promise<RunConfig> {
  const { decodeRunConfig } = await import('../run-config/run-config.ts');
  const config = decodeRunConfig(value, 'the request');
  if (config.name !== name)
    throw new SkepError('supervisor/protocol', { message: 'that is another workload' });
  return config;
}

async function withFront(endpoint: Endpoint, { front }: ServerOptions): Promise<Result> {
  const door = await front?.();
  return door?.is === 'open' || door?.is === 'closed' ? { ...endpoint, front: door } : { ...endpoint };
}

/** Looks at intervals instead of reacting to each of the many ways in which the last work can end. */
function endWhenIdle(
  options: ServerOptions,
  sockets: ReadonlySet<Socket>,
  ending: AbortController,
): () => void {
  let resumed = false;
  void options.resume.complete.then(() => (resumed = true));
  let idleRounds = 0;
  let last: Promise<void> | undefined;
  const isIdle = (): boolean =>
    resumed && sockets.size === 0 && options.host.busyWith.length === 0 && !options.resume.isBusy();
  /** A command that was killed may have left what nobody else would come for. */
  const lookLast = async (): Promise<void> => {
    await options.resume
      .again()
      .catch((error: unknown) => options.log.warn({ err: error }, 'what is left could not be looked for'));
    if (isIdle()) ending.abort();
    else idleRounds = 0;
  };
  const timer = setInterval(() => {
    idleRounds = isIdle() ? idleRounds + 1 : 0;
    if (idleRounds > 2) last ??= lookLast().finally(() => (last = undefined));
  }, options.lingerMs / 2);
  return () => clearInterval(timer);
}

/** Lets answers that are on their way out leave before connections are cut. */
async function cut(sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = [...sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve)));
  for (const socket of sockets) socket.end();
  const timer = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, 500);
  try {
    await Promise.all(closed);
  } finally {
    clearTimeout(timer);
  }
}
