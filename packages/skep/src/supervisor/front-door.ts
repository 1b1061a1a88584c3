import type { Server } from 'node:http';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { closeServer } from '@skep/core/fetch/listen.ts';
import type { Places } from '@skep/core/files/places.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { httpServer, listenOn } from '@skep/proxy/listener.ts';
import { frontRequests, type Answering } from './front-requests.ts';
import { forgetFrontDoor, writeFrontDoor, type FrontDoor } from './front-state.ts';
import { whatIsKept } from './address.ts';
import { holderOf } from './port-holder.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { readStatus } from './state.ts';

export interface FrontDoorOptions {
  readonly places: Places;
  readonly self: ProcessIdentity;
  readonly platform: NodeJS.Platform;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly log: Log;
  /** The port that the user wants it at now; 0 for none. */
  readonly wanted: () => Promise<number>;
  /** Told each time that it has opened, at whatever port. */
  readonly onOpen?: () => void;
  /** See `FrontRequestsOptions`. */
  readonly find: (name: string) => Answering | undefined;
}

/** A supervisor's one address of all its workloads. */
export interface OpenFrontDoor {
  /** Opens it where the user wants it by now and it can be had; resolves to how it stands. Never rejects. */
  readonly look: () => Promise<FrontDoor>;
  /** Ends it, and what comes through it. Idempotent. */
  close(): Promise<void>;
}

const HOST = '127.0.0.1';
/** How often a port that another program has is tried again: the first delay, doubled up to the longest. */
const RETRY = { firstMs: 1_000, longestMs: 30_000 } as const;

/** Begins to open it; while another program has its port it is tried again until `close`. */
export function openFrontDoor(options: FrontDoorOptions): OpenFrontDoor {
  const { places, self, clock, log } = options;
  let standing: Server | undefined;
  /** Where that is; 0 once there is to be none. */
  let at: number | undefined;
  let state: Exclude<FrontDoor, { readonly is: 'resting' }> = { is: 'off' };
  let retry: { readonly timer: Timer; readonly delayMs: number } | undefined;
  let ended = false;
  let turn: Promise<unknown> = Promise.resolve();

  async function shut(): Promise<void> {
    retry?.timer.cancel();
    standing?.closeAllConnections();
    if (standing) await closeServer(standing);
    [standing, at] = [undefined, undefined];
  }

  async function stand(port: number): Promise<void> {
    const server = serverAt(port, options);
    await listenOn(server, HOST, port);
    server.on('error', (error) => log.warn({ err: error }, 'a connection could not be accepted'));
    standing = server;
    state = { is: 'open', port, process: self };
    log.info({ port }, 'the front door is open');
  }

  async function open(port: number, isAsked: boolean): Promise<void> {
    if (ended || port === at) return;
    const delayMs = isAsked ? RETRY.firstMs : Math.min((retry?.delayMs ?? 0) * 2, RETRY.longestMs);
    await shut();
    try {
      if (port === 0) state = { is: 'off' };
      else await stand(port);
    } catch (error) {
      retry = { delayMs, timer: clock.after(delayMs, () => void inTurn(false)) };
      // Nobody waits, and the holder was asked already.
      if (!isAsked) return;
      state = { is: 'closed', why: await whyClosed(port, error, options) };
      log.warn({ why: state.why }, 'the front door is closed');
    }
    if (state.is !== 'closed') at = port;
    await writeFrontDoor(places, { ...state, port, ...self, state: whatIsKept(places).state });
    if (state.is === 'open') options.onOpen?.();
  }

  function inTurn(isAsked: boolean): Promise<FrontDoor> {
    const next = turn.then(async () => {
      try {
        await open(await options.wanted(), isAsked);
      } catch (error) {
        log.warn({ err: error }, 'the front door could not be looked after');
      }
      return state;
    });
    turn = next;
    return next;
  }

  void inTurn(true);
  return {
    look: () => inTurn(true),
    async close() {
      if (ended) return;
      ended = true;
      await turn;
      await shut();
      await forgetFrontDoor(places);
    },
  };
}

function serverAt(port: number, options: FrontDoorOptions): Server {
  const { places, self } = options;
  const server = httpServer();
  const statusOf = async (name: string) => (await readStatus(places, name))?.status;
  server.on('request', frontRequests({ ...options, host: HOST, port, statusOf, pid: self.pid }));
  return server;
}

/** One line for whoever waits for a run, which goes on without it. */
async function whyClosed(port: number, error: unknown, options: FrontDoorOptions): Promise<string> {
  const choose = 'choose another with skep config set front-port N, or 0 for none';
  if (hasCode(error, 'proxy/port-busy'))
    return `port ${port} of the front door is taken by ${await holderOf(port, options)}; ${choose}`;
  const reason = error instanceof SkepError ? error.message : 'internal error';
  return `the front door cannot listen: ${reason}; ${choose}`;
}
