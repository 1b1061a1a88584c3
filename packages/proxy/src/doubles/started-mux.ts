import { silentLog, type Log } from '@skep/core/log/log.ts';
import { Mux } from '../backend/mux/mux.ts';
import { EraLink } from '../backend/modern/era-link.ts';
import { Pipe } from '../backend/stdio/pipe.ts';
import type { Peer, Waiter } from '../backend/port.ts';
import { abilitiesOf, CARRIED_CAPABILITIES } from '../message/client-abilities.ts';
import {
  readMessage,
  type Message,
  type Notification,
  type Request,
  type Response,
} from '../message/json-rpc.ts';
import { manualClock, type ManualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { scriptedServer, type Received, type Script, type ScriptedServer } from './scripted-server.ts';

export const TIMEOUT_MS = 60_000;

export function read(value: unknown): Message {
  const message = readMessage(typeof value === 'string' ? value : JSON.stringify(value));
  if (typeof message === 'string') throw new TypeError(message);
  return message;
}
export function request(id: unknown, method: string, params: object = {}): Request {
  return read({ jsonrpc: '2.0', id, method, params }) as Request;
}
export function notice(method: string, params: object = {}): Notification {
  return read({ jsonrpc: '2.0', method, params }) as Notification;
}
export function result(id: unknown, value: object = {}): Response {
  return read({ jsonrpc: '2.0', id, result: value }) as Response;
}

const ALL_ABILITIES = abilitiesOf(
  read({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { capabilities: CARRIED_CAPABILITIES },
  }) as Request,
);

/** A client that writes down what it hears. */
export class Client implements Peer {
  readonly kind = 'session';
  readonly key: string;
  principal: string | undefined;
  logLevel: string | undefined;
  unanswered = 0;
  abilities: Peer['abilities'] = ALL_ABILITIES;
  readonly heard: Received[] = [];
  listener: Peer['listener'];

  constructor(key: string, listens = true) {
    this.key = key;
    this.listener = listens
      ? { live: true, send: (message) => void this.heard.push(JSON.parse(message.text)) }
      : undefined;
  }
}

export interface Outcome {
  readonly before: Received[];
  readonly done: Promise<string>;
}

/** A waiter that writes down what it hears; `done` is the reply's text or the failure's code. */
export function outcome(carries = true): Waiter & Outcome {
  const { promise, resolve } = Promise.withResolvers<string>();
  const before: Received[] = [];
  return {
    carries,
    before,
    done: promise,
    send: (message) => void before.push(JSON.parse(message.text)),
    finish: (reply) => resolve(reply.text),
    fail: (code) => resolve(code),
  };
}

export interface StartedMux {
  readonly server: ScriptedServer;
  readonly clock: ManualClock;
  readonly mux: Mux;
  readonly join: (key: string, listens?: boolean) => Client;
  readonly ask: (client: Peer, message: Request) => Outcome;
  /** Resolves when everything the server said so far has been routed. */
  readonly settled: (client: Peer) => Promise<void>;
}

/** A mux attached to a scripted server, under a clock that stands. */
export async function started(
  script?: Script,
  log: Log = silentLog,
  server: ScriptedServer = scriptedServer(script),
): Promise<StartedMux> {
  const clock = manualClock();
  const mux = new Mux({
    open: (events) =>
      new EraLink({
        ...events,
        clock,
        skepVersion: '1',
        open: (inner) => new Pipe({ backend: server.backend, clock, ...inner }),
      }),
    clock,
    log,
    requestTimeoutMs: TIMEOUT_MS,
    skepVersion: '1',
  });
  await mux.attach();
  const join = (key: string, listens = true): Client => {
    const client = new Client(key, listens);
    mux.join(client);
    return client;
  };
  const ask = (client: Peer, message: Request, carries = true): Outcome => {
    const waiter = outcome(carries);
    mux.request(client, message, waiter);
    return waiter;
  };
  const settled = async (client: Peer): Promise<void> =>
    void (await ask(client, request('settle', 'x/settle')).done);
  return { server, clock, mux, join, ask, settled };
}

export const silent: Script = ({ method }) => (method === 'tools/call' ? 'handled' : undefined);
export function call(id: unknown, params: object = {}): Request {
  return request(id, 'tools/call', params);
}
export function isCall({ method }: Received): boolean {
  return method === 'tools/call';
}
