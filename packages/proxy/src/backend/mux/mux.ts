import { randomInt } from 'node:crypto';
import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { limitedLog, type LimitedLog } from '../limited-log.ts';
import {
  copyPiece,
  errorOf,
  findToken,
  MAX_ID_CHARACTERS,
  isAmbiguousAt,
  memberAt,
  notification,
  requestOf,
  resultOf,
  withId,
  withToken,
  type JsonObject,
  type Message,
  type Notification,
  type Request,
  type Response,
} from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { rawAt } from '@skep/core/json/scan.ts';
import type { Link, OpenLink } from '../link.ts';
import {
  awaited,
  failureWith,
  DEAF,
  SELF,
  told,
  type BackendPort,
  type Met,
  type Newcomer,
  type Peer,
  type PortState,
  type ServerSession,
  type Waiter,
} from '../port.ts';
import { Handshake } from './handshake.ts';
import { InFlight, onLink, PROGRESS_TOKEN, type Flight } from './in-flight.ts';
import { LogLevels } from './log-levels.ts';
import { Lines } from './lines.ts';
import { Routing } from './routing.ts';
import { ServerRequests, type Asked } from './server-requests.ts';
import { shortForm, Subscriptions, type Errand, type Trip } from './subscriptions.ts';

export interface MuxOptions {
  readonly open: OpenLink;
  readonly clock: Clock;
  readonly log: Log;
  readonly requestTimeoutMs: number;
  /** The version of Skep that the server is told. */
  readonly skepVersion: string;
  /** Told when the server says that its tools are others than before. */
  readonly toolsChanged?: (() => void) | undefined;
  /**
   * The server knows one client by this link, and other replicas of the proxy may serve the same session of it (decision 0445): what
   * the server keeps for that client is not kept here as well, and no id here is one of another replica.
   */
  readonly isReplicated?: boolean;
}

const REQUEST_ID = ['params', 'requestId'];
const INTERNAL_ERROR = -32603;
/** Some servers read ids into 32 bits; above it there is room for more requests than any session has. */
const MOST_FIRST_ID = 2 ** 30;
const INITIALIZED = notification(METHODS.initialized, {}).text;

/** Clients onto one link to a server: all of them, or a single one where each has a link (http/conversations.ts). */
export class Mux implements BackendPort {
  readonly #log: LimitedLog;
  readonly #link: Link;
  readonly #handshake: Handshake;
  readonly #inFlight: InFlight;
  readonly #serverRequests: ServerRequests;
  readonly #subscriptions = new Subscriptions();
  readonly #peers = new Set<Peer>();
  readonly #routing: Routing;
  readonly #levels: LogLevels;
  readonly #isReplicated: boolean;
  #greets = false;

  constructor(options: MuxOptions) {
    const { open, clock, isReplicated = false } = options;
    const log = limitedLog(options.log, clock);
    const lastId = isReplicated ? randomInt(MOST_FIRST_ID) : 0;
    this.#log = log;
    this.#isReplicated = isReplicated;
    const lines = new Lines({
      log,
      route: (message, about) => this.#routing.route(message, about),
      fail: (id) => this.#inFlight.take(id)?.waiter,
    });
    this.#link = open({
      log,
      lastId,
      onLine: (line, about) => lines.take(line, about),
      onBroken: () => this.#broken(),
      onAttachedAgain: () => {
        if (this.#greets) this.greet().catch((err: unknown) => log.warn({ err }, 'the greeting failed'));
      },
      onFailed: (id, code, said) => this.#inFlight.take(id)?.waiter.fail(code, said),
      isWaiting: (id) => this.#inFlight.get(id) !== undefined,
    });
    this.#inFlight = new InFlight({
      clock,
      timeoutMs: options.requestTimeoutMs,
      lastId,
      onExpired: (flight) => this.#expired(flight),
    });
    this.#handshake = new Handshake(
      (request, waiter) => this.#forward(SELF, request, waiter),
      options.skepVersion,
    );
    this.#levels = new LogLevels(this.#peers, (peer, request, waiter) =>
      this.#forward(peer, request, waiter),
    );
    this.#serverRequests = new ServerRequests({
      clock,
      ids: isReplicated ? 'own' : 'fresh',
      onExpired: (asked) => this.#unanswered(asked),
    });
    this.#routing = new Routing({
      clock,
      log,
      inFlight: this.#inFlight,
      serverRequests: this.#serverRequests,
      subscriptions: this.#subscriptions,
      peers: this.#peers,
      isReplicated,
      toServer: (message) => this.#tell(message),
      toolsChanged: () => options.toolsChanged?.(),
      unanswerable: () => this.#handshake.askedInVain(),
    });
  }

  get state(): PortState {
    return this.#link.state;
  }

  /** Requests that still wait for an answer. */
  get waiting(): number {
    return this.#inFlight.size;
  }

  attach(): Promise<void> {
    return this.#link.attach();
  }

  /** A session that may hear notifications from now on. */
  join(peer: Peer): void {
    this.#peers.add(peer);
  }

  listens(): void {
    this.#link.listen?.();
    this.#routing.listens();
  }

  /** No client hears what the server says unasked. */
  deaf(): void {
    this.#link.deaf?.();
  }

  /** What another replica can go on with. */
  session(): ServerSession | undefined {
    return this.#link.session?.();
  }

  leave(peer: Peer): void {
    // One that never was welcome may wait for answers all the same.
    this.#peers.delete(peer);
    this.#abandonAll(peer, 'proxy/session-unknown', 'the client ended its session');
    for (const uri of this.#subscriptions.leave(peer)) {
      const trip: Trip = (done) => this.#own(METHODS.unsubscribe, { uri }, done);
      this.#subscriptions.unsubscribe(uri, { peer, trip, alone() {}, fail() {} });
    }
    this.#routing.forget(peer);
    if (this.#link.state === 'attached') this.#levels.settle();
  }

  gone(peer: Peer): void {
    this.#abandonAll(peer, 'proxy/client-gone', 'the client went away');
  }

  initialize(newcomer: Newcomer): () => void {
    const joining: Newcomer = {
      ...newcomer,
      welcome: (reply, version) => {
        const peer = newcomer.welcome(reply, version);
        if (peer) this.join(peer);
        return peer;
      },
    };
    if (this.#link.state === 'attached') this.#handshake.join(joining);
    else newcomer.fail('proxy/backend-away');
    return () => this.#handshake.leave(joining);
  }

  /** Also with what takes the server's place. */
  greet(): Promise<unknown> {
    this.#greets = true;
    return this.#shakeHands();
  }

  async meet(): Promise<Met> {
    if (this.#link.state !== 'attached') throw new SkepError('proxy/backend-away');
    if ((await this.#link.era?.()) === 'modern') return { era: 'modern' };
    const agreed = await this.#shakeHands();
    if (!isRecord(agreed)) throw new SkepError('proxy/bad-gateway');
    return { era: 'legacy', agreed };
  }

  #shakeHands(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.initialize({
        id: '0',
        wanted: undefined,
        welcome(reply) {
          resolve(memberAt(reply.value, ['result']));
          return undefined;
        },
        refuse: () => resolve(undefined),
        fail: (code, said) => reject(failureWith(code, said)),
      });
    });
  }

  ask(method: string, params: JsonObject): Promise<string> {
    this.#handshake.announceAlone(() => this.#link.write(INITIALIZED));
    const { promise, waiter } = awaited();
    this.#forward(SELF, requestOf('0', method, params), waiter);
    return promise;
  }

  request(peer: Peer, request: Request, waiter: Waiter): void {
    // Nobody without a session announces itself, and servers answer nothing before that.
    if (peer.kind !== 'session') this.#handshake.announce(() => this.#link.write(INITIALIZED));
    switch (request.method) {
      case METHODS.ping:
        waiter.finish(resultOf(request.id, '{}'));
        break;
      case METHODS.setLogLevel:
        if (this.#isReplicated) this.#forward(peer, request, waiter);
        else this.#levels.set(peer, request, waiter);
        break;
      case METHODS.subscribe:
      case METHODS.unsubscribe:
        if (this.#isReplicated) this.#forward(peer, request, waiter);
        else this.#subscription(peer, request, waiter);
        break;
      default:
        this.#forward(peer, request, waiter);
    }
  }

  notify(peer: Peer, message: Notification): boolean {
    if (message.method === METHODS.initialized && !this.#isReplicated)
      return this.#handshake.announce(() => this.#link.write(message.text));
    if (message.method === METHODS.cancelled) return this.#cancel(peer, message);
    if (message.method === METHODS.progress) return this.#progress(peer, message);
    return this.#link.write(message.text);
  }

  answer(peer: Peer, reply: Response): boolean {
    const asked = this.#serverRequests.heldBy(peer, reply.id);
    if (asked === undefined && this.#isReplicated) {
      if (this.session() === undefined) throw new SkepError('proxy/question-elsewhere');
      return this.#link.write(reply.text);
    }
    if (asked === undefined) {
      this.#log.debug({}, 'dropped an answer that the server did not ask for');
      return true;
    }
    if (!this.#link.write(withId(reply, asked.serverId).text)) return false;
    this.#serverRequests.remove(asked.id);
    return true;
  }

  restarted(): void {
    this.#link.restarted();
    this.#forgetServer();
  }

  ended(): void {
    this.#link.ended();
    this.#broken();
    this.#handshake.reset();
  }

  close(goesOn?: 'elsewhere'): void {
    this.#link.close(goesOn);
    this.#forgetServer();
    this.#log.close();
  }

  #forgetServer(): void {
    this.#broken();
    this.#handshake.reset();
    this.#subscriptions.clear();
    this.#routing.clear();
    this.#peers.clear();
    this.#levels.clear();
  }

  #broken(): void {
    this.#serverRequests.clear();
    this.#subscriptions.failWaiting('proxy/backend-lost');
    this.#inFlight.failAll('proxy/backend-lost');
  }

  #forward(peer: Peer, request: Request, waiter: Waiter): void {
    const span = findToken(request, PROGRESS_TOKEN);
    const token = span === undefined ? undefined : copyPiece(rawAt(request.text, span));
    const isUsable = !isAmbiguousAt(request, PROGRESS_TOKEN) && (token?.length ?? 0) <= MAX_ID_CHARACTERS;
    if (!isUsable) waiter.fail('proxy/not-json-rpc');
    else if (this.#link.state !== 'attached') waiter.fail('proxy/backend-away');
    else if (!this.#inFlight.hasRoomFor(peer)) waiter.fail('proxy/busy');
    else {
      const flight = this.#inFlight.add(peer, request, waiter, token);
      if (!this.#link.write(onLink(request, flight), flight.id, peer))
        this.#inFlight.take(flight.id)?.waiter.fail('proxy/busy');
    }
  }

  /** A request of our own; only its success matters. */
  #own(method: string, params: JsonObject, done: (succeeded: boolean) => void): void {
    this.#forward(SELF, requestOf('0', method, params), told(DEAF, done));
  }

  #subscription(peer: Peer, request: Request, waiter: Waiter): void {
    const uri = memberAt(request.value, ['params', 'uri']);
    if (typeof uri !== 'string') {
      this.#forward(peer, request, waiter);
      return;
    }
    const asking = shortForm(request, uri);
    const errand: Errand = {
      peer,
      trip: (done) => this.#forward(peer, asking, told(waiter, done)),
      alone: () => waiter.finish(resultOf(request.id, '{}')),
      fail: (code) => waiter.fail(code),
    };
    if (request.method === METHODS.unsubscribe) this.#subscriptions.unsubscribe(uri, errand);
    else this.#subscriptions.subscribe(uri, errand);
  }

  /** Servers choose the tokens, so other clients may guess them. */
  #progress(peer: Peer, message: Notification): boolean {
    const token = memberAt(message.value, ['params', 'progressToken']);
    const isAwaited = this.#isReplicated || this.#serverRequests.awaitsProgress(peer, token);
    return !isAwaited || this.#link.write(message.text);
  }

  #cancel(peer: Peer, message: Notification): boolean {
    const span = findToken(message, REQUEST_ID);
    const flight = span && this.#inFlight.ofPeer(peer, rawAt(message.text, span));
    if (!flight || this.#inFlight.take(flight.id) === undefined) return true;
    flight.waiter.fail('proxy/cancelled');
    return this.#link.write(withToken(message, REQUEST_ID, flight.id).text);
  }

  #expired(flight: Flight): void {
    flight.waiter.fail('proxy/timeout');
    this.#tellCancelled(flight, 'timeout');
  }

  /** Nobody hears answers to that peer's requests, and the server none to what it asked it. */
  #abandonAll(peer: Peer, code: Code, reason: string): void {
    const asked = this.#serverRequests.leave(peer);
    if (peer.unanswered === 0 && asked.length === 0) return;
    for (const flight of this.#inFlight.of(peer)) {
      if (this.#inFlight.take(flight.id) === undefined) continue;
      flight.waiter.fail(code);
      this.#tellCancelled(flight, reason);
    }
    for (const one of asked) this.#unanswered(one);
  }

  #tellCancelled(flight: Flight, reason: string): void {
    if (flight.request.method === METHODS.initialize) return;
    this.#tell(notification(METHODS.cancelled, { requestId: Number(flight.id), reason }));
  }

  #unanswered(asked: Asked): void {
    const failure = { code: INTERNAL_ERROR, message: 'the client did not answer' };
    this.#tell(errorOf(asked.serverId, failure));
  }

  /** Something that the server should know but that no client waits for. */
  #tell(message: Message): void {
    if (this.#link.write(message.text)) return;
    this.#log.warn({ kind: message.kind, pipe: this.#link.state }, 'the server could not be told');
  }
}
