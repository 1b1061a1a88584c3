import type { Log } from '@skep/core/log/log.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import {
  copyPiece,
  errorOf,
  findToken,
  MAX_ID_CHARACTERS,
  memberAt,
  ownToken,
  resultOf,
  withId,
  withToken,
  type Message,
  type Notification,
  type Request,
  type Response,
} from '../../message/json-rpc.ts';
import { SUBSCRIPTION_ID } from '../../message/envelope.ts';
import { refusalOf } from '../../message/client-abilities.ts';
import { CLIENT_REQUESTS, LIST_CHANGED, METHODS } from '../../message/methods.ts';
import { rawAt } from '@skep/core/json/scan.ts';
import type { Flight, InFlight } from './in-flight.ts';
import { admits } from './log-levels.ts';
import type { Listener, Peer } from '../port.ts';
import type { ServerRequests, Target } from './server-requests.ts';
import type { Subscriptions } from './subscriptions.ts';

export interface RoutingOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly inFlight: InFlight;
  readonly serverRequests: ServerRequests;
  readonly subscriptions: Subscriptions;
  readonly peers: ReadonlySet<Peer>;
  /** See `MuxOptions`. */
  readonly isReplicated: boolean;
  toServer(message: Message): void;
  /** The server says that its tools are others than before. */
  toolsChanged(): void;
  /** The server asked a client, and no single client could be asked. */
  unanswerable(): void;
}

const PROGRESS_TOKEN = ['params', 'progressToken'];
const REQUEST_ID = ['params', 'requestId'];
const METHOD_NOT_FOUND = -32601;
/** Tasks and elicitations whose client is remembered: the newest of each. */
const REMEMBERED = 10_000;
/** Clients open their stream right after `notifications/initialized`, and servers ask for roots just then. */
const PARKED_MS = 5_000;
const MAX_PARKED = 16;
/** The text of a larger request is not worth keeping. */
const MAX_PARKED_CHARACTERS = 64 * 1024;

/** Decides which client hears what the server says. Nothing is broadcast that is one client's. */
export class Routing {
  readonly #options: RoutingOptions;
  readonly #taskOwners = new Map<string, Peer>();
  readonly #elicited = new Map<string, Peer>();
  /** Requests of the server that came before the only client opened a stream to hear them. */
  readonly #parked = new Map<Request, Timer>();

  constructor(options: RoutingOptions) {
    this.#options = options;
  }

  /** `about` is the request on whose stream the message came, where that is known. */
  route(message: Message, about?: string): void {
    const flight = about === undefined ? undefined : this.#options.inFlight.get(about);
    if (message.kind === 'response') this.#response(message);
    else if (message.kind === 'request') this.#request(message, flight);
    else this.#notification(message, flight);
  }

  /** Forgets what was remembered about a peer. */
  forget(peer: Peer): void {
    for (const owners of [this.#taskOwners, this.#elicited])
      for (const [name, owner] of owners) if (owner === peer) owners.delete(name);
  }

  /** A client opened its stream: what waited for it can be asked now. */
  listens(): void {
    for (const request of this.#unpark()) this.#request(request);
  }

  clear(): void {
    this.#unpark();
    this.#taskOwners.clear();
    this.#elicited.clear();
  }

  #response(reply: Response): void {
    const flight = this.#options.inFlight.take(ownToken(reply.value['id']) ?? '');
    if (flight === undefined) {
      this.#drop('an answer that nobody waits for', { id: reply.id.slice(0, 64) });
      return;
    }
    const task = memberAt(reply.value, ['result', 'task', 'taskId']);
    if (flight.peer.kind === 'session') this.#remember(this.#taskOwners, task, flight.peer);
    flight.waiter.finish(withId(reply, flight.request.id));
  }

  #request(request: Request, about?: Flight): void {
    const { serverRequests } = this.#options;
    if (request.method === METHODS.ping) {
      this.#options.toServer(resultOf(request.id, '{}'));
      return;
    }
    const isForClients = CLIENT_REQUESTS.has(request.method);
    const target = isForClients ? this.#target(about) : undefined;
    const mayListen = target === undefined && isForClients ? this.#mayListenSoon() : undefined;
    const client = target?.peer ?? mayListen;
    const refusal = client && refusalOf(request, client.abilities);
    if (refusal) {
      this.#options.toServer(errorOf(request.id, refusal));
      return;
    }
    if (mayListen && this.#park(request)) return;
    if (target === undefined || !serverRequests.ask(request, target)) {
      this.#refuse(request);
      return;
    }
    this.#remember(this.#elicited, memberAt(request.value, ['params', 'elicitationId']), target.peer);
  }

  /** Servers choose these names, and each is kept while its client is there. */
  #remember(owners: Map<string, Peer>, name: unknown, peer: Peer): void {
    if (typeof name !== 'string' || name.length > MAX_ID_CHARACTERS) return;
    owners.delete(name);
    owners.set(copyPiece(name), peer);
    const [oldest] = owners.keys();
    if (owners.size > REMEMBERED && oldest !== undefined) owners.delete(oldest);
  }

  /** False when too many wait already. */
  #park(request: Request): boolean {
    if (this.#parked.size >= MAX_PARKED || request.text.length > MAX_PARKED_CHARACTERS) return false;
    const timer = this.#options.clock.after(PARKED_MS, () => {
      if (this.#parked.delete(request)) this.#refuse(request);
    });
    this.#parked.set(request, timer);
    return true;
  }

  /** Everything that was parked, oldest first; it waits no longer. */
  #unpark(): readonly Request[] {
    const requests = [...this.#parked.keys()];
    for (const timer of this.#parked.values()) timer.cancel();
    this.#parked.clear();
    return requests;
  }

  /** The one client the server can mean: the only one with calls in flight, else the only one that listens. */
  #target(about: Flight | undefined): Target | undefined {
    if (about !== undefined && about.peer.kind !== 'proxy') {
      const { peer, waiter } = about;
      return waiter.carries ? { peer, channel: waiter, flight: about } : targetOn(peer, about);
    }
    const caller = this.#options.inFlight.caller();
    const free = caller === 'several' ? this.#options.inFlight.onlyFree() : undefined;
    if (free?.waiter.carries === true) return { peer: free.peer, channel: free.waiter, flight: free };
    if (caller === 'several' || (caller !== 'none' && caller.kind === 'one-off')) return undefined;
    if (caller !== 'none') {
      const calls = this.#options.inFlight.of(caller);
      const flight = calls.findLast(({ waiter }) => waiter.carries);

      if (flight !== undefined) return { peer: caller, channel: flight.waiter, flight };
      return targetOn(caller, calls.at(-1));
    }
    const listeners = this.#listeners();
    return listeners.length === 1 && listeners[0] !== undefined
      ? targetOn(listeners[0], undefined)
      : undefined;
  }

  /** The only client, before it has opened its stream. */
  #mayListenSoon(): Peer | undefined {
    const [only, ...others] = this.#sessions();
    return others.length === 0 && only?.listener === undefined ? only : undefined;
  }

  #refuse(request: Request): void {
    this.#drop('a request of the server that no single client can answer', { method: request.method });
    const failure = { code: METHOD_NOT_FOUND, message: 'no client can answer this now' };
    this.#options.toServer(errorOf(request.id, failure));
    this.#options.unanswerable();
  }

  #listeners(): readonly Peer[] {
    return this.#sessions().filter(({ listener }) => listener?.live === true);
  }

  #sessions(): readonly Peer[] {
    return [...this.#options.peers].filter(({ kind }) => kind === 'session');
  }

  #notification(message: Notification, about?: Flight): void {
    const { method, value } = message;
    if (method === METHODS.toolsChanged) this.#options.toolsChanged();
    const listen = findToken(message, SUBSCRIPTION_ID);
    if (listen !== undefined) this.#toListen(message, rawAt(message.text, listen));
    else if (method === METHODS.progress) this.#progress(message);
    else if (LIST_CHANGED.has(method)) this.#toListeners(message, this.#options.peers);
    else if (method === METHODS.resourceUpdated) this.#resourceUpdated(message);
    else if (method === METHODS.logMessage) this.#log(message, about);
    else if (method === METHODS.cancelled) this.#withdrawn(message);
    else if (method === METHODS.taskStatus) {
      this.#toOwner(message, this.#taskOwners, memberAt(value, ['params', 'taskId']));
    } else if (method === METHODS.elicitationComplete) {
      this.#toOwner(message, this.#elicited, memberAt(value, ['params', 'elicitationId']));
    } else this.#unknown(message);
  }

  #progress(message: Notification): void {
    const token = ownToken(memberAt(message.value, PROGRESS_TOKEN));
    const flight = token === undefined ? undefined : this.#options.inFlight.get(token);
    if (flight?.token === undefined) {
      this.#drop('progress that nobody waits for', {});
      return;
    }
    this.#options.inFlight.touch(flight);
    flight.waiter.send(withToken(message, PROGRESS_TOKEN, flight.token));
  }

  #resourceUpdated(message: Notification): void {
    const uri = memberAt(message.value, ['params', 'uri']);
    // Its only client may have subscribed through another replica.
    if (this.#options.isReplicated) this.#toListeners(message, this.#options.peers);
    else if (typeof uri === 'string') this.#toListeners(message, this.#options.subscriptions.holdersOf(uri));
  }

  /** On the stream that a modern client opened with `subscriptions/listen`, under its own id. */
  #toListen(message: Notification, id: string): void {
    const flight = this.#options.inFlight.get(ownToken(JSON.parse(id)) ?? '');
    if (flight === undefined) this.#drop('what nobody listens to', { method: message.method });
    else flight.waiter.send(withToken(message, SUBSCRIPTION_ID, flight.request.id));
  }

  #log(message: Notification, about: Flight | undefined): void {
    const level = memberAt(message.value, ['params', 'level']);
    const alone = about?.peer ?? this.#options.inFlight.caller();
    if (typeof alone === 'object' && alone.kind === 'call') {
      // Modern clients hear what they asked for with the request, on its stream.
      if (alone.logLevel !== undefined && admits(alone.logLevel, level)) this.#toCaller(message, alone);
      return;
    }
    const caller = this.#onlySession();
    if (caller !== undefined) {
      if (admits(caller.logLevel, level)) this.#toCaller(message, caller);
      return;
    }
    const willing = this.#sessions().filter(({ logLevel }) => admits(logLevel, level));
    this.#toListeners(message, willing);
  }

  #withdrawn(message: Notification): void {
    const span = findToken(message, REQUEST_ID);
    const asked = span && this.#options.serverRequests.withdrawn(rawAt(message.text, span));
    if (asked) asked.channel.send(withToken(message, REQUEST_ID, asked.id));
    else if (this.#options.isReplicated) this.#toListeners(message, this.#options.peers);
    else this.#drop('a cancellation of nothing open', {});
  }

  #toListeners(message: Notification, peers: Iterable<Peer>): void {
    for (const { listener } of peers) listener?.send(message);
  }

  #toOwner(message: Notification, owners: ReadonlyMap<string, Peer>, key: unknown): void {
    const owner = typeof key === 'string' ? owners.get(key) : undefined;
    if (this.#options.isReplicated) this.#toListeners(message, this.#options.peers);
    else if (owner === undefined)
      this.#drop('a notification without a known owner', { method: message.method });
    else owner.listener?.send(message);
  }

  /** What is not known is its caller's, or its only session's where nobody waits for an answer. */
  #unknown(message: Notification): void {
    const caller = this.#onlySession();
    const [session, ...others] = this.#sessions();
    const isAlone = others.length === 0 && this.#options.inFlight.caller() === 'none';
    if (caller !== undefined) this.#toCaller(message, caller);
    else if (isAlone && session !== undefined) session.listener?.send(message);
    else this.#drop('a notification for no particular client', { method: message.method });
  }

  /** The session that all unanswered requests are of: what the server says now is about them. */
  #onlySession(): Peer | undefined {
    const caller = this.#options.inFlight.caller();
    return typeof caller === 'object' && caller.kind === 'session' ? caller : undefined;
  }

  /** On the stream of one of its calls, else on the stream it listens on, else not at all: never to another session. */
  #toCaller(message: Notification, caller: Peer): void {
    const flight = this.#options.inFlight.of(caller).find(({ waiter }) => waiter.carries);
    (flight?.waiter ?? caller.listener)?.send(message);
  }

  #drop(what: string, fields: object): void {
    this.#options.log.debug(fields, `dropped ${what}`);
  }
}

function targetOn(peer: Peer, flight: Flight | undefined): Target | undefined {
  const channel: Listener | undefined = peer.listener;
  return channel?.live === true ? { peer, channel, flight } : undefined;
}
