import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { limitedLog, type LimitedLog } from '../limited-log.ts';
import {
  copyPiece,
  errorOf,
  findToken,
  idMeantBy,
  MAX_ID_CHARACTERS,
  isAmbiguousAt,
  memberAt,
  notification,
  readBatch,
  readMessage,
  requestOf,
  resultOf,
  withId,
  withToken,
  type JsonObject,
  type Message,
  type Notification,
  type Request,
  type Response,
  type Unreadable,
} from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { rawAt } from '@skep/core/json/scan.ts';
import type { StdioBackend } from '../backend.ts';
import { Handshake, type Newcomer } from './handshake.ts';
import { InFlight, onPipe, PROGRESS_TOKEN, type Flight } from './in-flight.ts';
import { isLevel, mostVerbose } from './log-levels.ts';
import { awaited, DEAF, SELF, told, type Peer, type Waiter } from './peer.ts';
import { Pipe, type PipeState } from './pipe.ts';
import { Routing } from './routing.ts';
import { ServerRequests, type Asked } from './server-requests.ts';
import { Subscriptions, type Errand, type Trip } from './subscriptions.ts';

export interface MuxOptions {
  readonly backend: StdioBackend;
  readonly clock: Clock;
  readonly log: Log;
  readonly requestTimeoutMs: number;
  /** The version of Skep that the server is told. */
  readonly skepVersion: string;
}

const LOG_EXCERPT = 200;
/** Characters of a subscription that waits for another one. */
const KEPT_CHARS = 4 * 1024;
const REQUEST_ID = ['params', 'requestId'];
const INTERNAL_ERROR = -32603;
const INITIALIZED = notification(METHODS.initialized, {}).text;

/** Many clients onto the one pipe of a stdio server. Knows nothing of HTTP: clients are peers and waiters. */
export class Mux {
  readonly #log: LimitedLog;
  readonly #pipe: Pipe;
  readonly #handshake: Handshake;
  readonly #inFlight: InFlight;
  readonly #serverRequests: ServerRequests;
  readonly #subscriptions = new Subscriptions();
  readonly #peers = new Set<Peer>();
  readonly #routing: Routing;
  /** The log level that the server was last set to. */
  #logLevel: string | undefined;
  #toldOfBatches = false;
  #greets = false;

  constructor(options: MuxOptions) {
    const { backend, clock } = options;
    const log = limitedLog(options.log, clock);
    this.#log = log;
    this.#pipe = new Pipe({
      backend,
      clock,
      log,
      onLine: (line) => this.#line(line),
      onBroken: () => this.#broken(),
      onAttachedAgain: () => {
        if (this.#greets) this.greet().catch((err: unknown) => log.warn({ err }, 'the greeting failed'));
      },
    });
    this.#inFlight = new InFlight({
      clock,
      timeoutMs: options.requestTimeoutMs,
      onExpired: (flight) => this.#expired(flight),
    });
    this.#handshake = new Handshake(
      (request, waiter) => this.#forward(SELF, request, waiter),
      options.skepVersion,
    );
    this.#serverRequests = new ServerRequests(clock, (asked) => this.#unanswered(asked));
    this.#routing = new Routing({
      clock,
      log,
      inFlight: this.#inFlight,
      serverRequests: this.#serverRequests,
      subscriptions: this.#subscriptions,
      peers: this.#peers,
      toServer: (message) => this.#tell(message),
      unanswerable: () => this.#handshake.askedInVain(),
    });
  }

  get pipeState(): PipeState {
    return this.#pipe.state;
  }

  /** Requests that still wait for an answer. */
  get waiting(): number {
    return this.#inFlight.size;
  }

  /** Attaches to the server; rejects when that fails. */
  attach(): Promise<void> {
    return this.#pipe.attach();
  }

  /** A session that may hear notifications from now on. */
  join(peer: Peer): void {
    this.#peers.add(peer);
  }

  /** A session opened a stream that it hears notifications on. */
  listens(): void {
    this.#routing.listens();
  }

  /** The session is over: its calls are cancelled, its questions answered with an error, its subscriptions ended. */
  leave(peer: Peer): void {
    if (!this.#peers.delete(peer)) return;
    this.#abandonAll(peer, 'proxy/session-unknown', 'the client ended its session');
    for (const asked of this.#serverRequests.leave(peer)) this.#unanswered(asked);
    for (const uri of this.#subscriptions.leave(peer)) {
      const trip: Trip = (done) => this.#own(METHODS.unsubscribe, { uri }, done);
      this.#subscriptions.unsubscribe(uri, { peer, trip, alone() {}, fail() {} });
    }
    this.#routing.forget(peer);
    this.#settleLogLevel();
  }

  /** A client without a session has gone: nobody can hear the answers to its requests any more. */
  gone(peer: Peer): void {
    this.#abandonAll(peer, 'proxy/client-gone', 'the client went away');
  }

  /** Gives back what is to be called when the newcomer's client has gone. */
  initialize(newcomer: Newcomer): () => void {
    if (this.#pipe.state === 'attached') this.#handshake.join(newcomer);
    else newcomer.fail('proxy/backend-away');
    return () => this.#handshake.leave(newcomer);
  }

  /**
   * The handshake ahead of any client, and with what takes the server's place. Resolves with its result, or undefined
   * when it answered with an error; rejects with the code of what kept it from answering.
   */
  greet(): Promise<unknown> {
    this.#greets = true;
    return new Promise((resolve, reject) => {
      this.initialize({
        id: '0',
        wanted: undefined,
        welcome: (reply) => resolve(memberAt(reply.value, ['result'])),
        refuse: () => resolve(undefined),
        fail: (code) => reject(new SkepError(code)),
      });
    });
  }

  /**
   * A request of whoever runs the proxy, after `greet` (docs/behaviour/proxy.md#the-handshake). Resolves with the text of
   * the answer, an error too; rejects with the code of what kept the server from answering.
   */
  ask(method: string, params: JsonObject): Promise<string> {
    this.#handshake.announceAlone(() => this.#pipe.write(INITIALIZED));
    const { promise, waiter } = awaited();
    this.#forward(SELF, requestOf('0', method, params), waiter);
    return promise;
  }

  /** A request of a client. The waiter hears exactly one `finish` or `fail`, possibly before this returns. */
  request(peer: Peer, request: Request, waiter: Waiter): void {
    // Nobody without a session announces itself, and servers answer nothing before that.
    if (peer.kind === 'one-off') this.#handshake.announce(() => this.#pipe.write(INITIALIZED));
    switch (request.method) {
      case METHODS.ping:
        waiter.finish(resultOf(request.id, '{}'));
        break;
      case METHODS.setLogLevel:
        this.#setLogLevel(peer, request, waiter);
        break;
      case METHODS.subscribe:
      case METHODS.unsubscribe:
        this.#subscription(peer, request, waiter);
        break;
      default:
        this.#forward(peer, request, waiter);
    }
  }

  /** A notification of a client. False when the server cannot take it now. */
  notify(peer: Peer, message: Notification): boolean {
    if (message.method === METHODS.initialized)
      return this.#handshake.announce(() => this.#pipe.write(message.text));
    if (message.method === METHODS.cancelled) return this.#cancel(peer, message);
    return this.#pipe.write(message.text);
  }

  /** A client's answer to a request of the server; what nobody asked this client is dropped. False as in `notify`. */
  answer(peer: Peer, reply: Response): boolean {
    const asked = this.#serverRequests.heldBy(peer, reply.id);
    if (asked === undefined) {
      this.#log.debug({}, 'dropped an answer that the server did not ask for');
      return true;
    }
    if (!this.#pipe.write(withId(reply, asked.serverId).text)) return false;
    this.#serverRequests.remove(asked.id);
    return true;
  }

  /** The server was started anew: nothing of before holds any longer. */
  restarted(): void {
    this.#pipe.restarted();
    this.#forgetServer();
  }

  /** The server's process has ended: nothing it said holds, and nobody can be answered until `restarted`. */
  ended(): void {
    this.#pipe.ended();
    this.#broken();
    this.#handshake.reset();
  }

  close(): void {
    this.#pipe.close();
    this.#forgetServer();
    this.#log.close();
  }

  #forgetServer(): void {
    this.#broken();
    this.#handshake.reset();
    this.#subscriptions.clear();
    this.#routing.clear();
    this.#peers.clear();
    this.#logLevel = undefined;
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
    else if (this.#pipe.state !== 'attached') waiter.fail('proxy/backend-away');
    else if (!this.#inFlight.hasRoomFor(peer)) waiter.fail('proxy/busy');
    else {
      const flight = this.#inFlight.add(peer, request, waiter, token);
      if (!this.#pipe.write(onPipe(request, flight)))
        this.#inFlight.take(flight.id)?.waiter.fail('proxy/busy');
    }
  }

  /** A request of our own; only its success matters. */
  #own(method: string, params: JsonObject, done: (succeeded: boolean) => void): void {
    this.#forward(SELF, requestOf('0', method, params), told(DEAF, done));
  }

  #setLogLevel(peer: Peer, request: Request, waiter: Waiter): void {
    const wanted = memberAt(request.value, ['params', 'level']);
    if (!isLevel(wanted)) {
      this.#forward(peer, request, waiter);
      return;
    }
    const before = peer.logLevel;
    peer.logLevel = wanted;
    const level = mostVerbose(this.#peers) ?? wanted;
    const asking = level === wanted ? request : requestOf(request.id, METHODS.setLogLevel, { level });
    const learn = (succeeded: boolean): void => {
      if (succeeded) this.#logLevel = level;
      else peer.logLevel = before;
    };
    if (level === this.#logLevel) waiter.finish(resultOf(request.id, '{}'));
    else this.#forward(peer, asking, told(waiter, learn));
  }

  #settleLogLevel(): void {
    const level = mostVerbose(this.#peers);
    if (level === undefined || level === this.#logLevel || this.#pipe.state !== 'attached') return;
    this.#own(METHODS.setLogLevel, { level }, (succeeded) => {
      if (succeeded) this.#logLevel = level;
    });
  }

  #subscription(peer: Peer, request: Request, waiter: Waiter): void {
    const uri = memberAt(request.value, ['params', 'uri']);
    if (typeof uri !== 'string') {
      this.#forward(peer, request, waiter);
      return;
    }
    const { id, method, text } = request;
    // It may have to wait, and is not kept then for what else it says.
    const asking = text.length <= KEPT_CHARS ? request : requestOf(id, method, { uri });
    const errand: Errand = {
      peer,
      trip: (done) => this.#forward(peer, asking, told(waiter, done)),
      alone: () => waiter.finish(resultOf(id, '{}')),
      fail: (code) => waiter.fail(code),
    };
    if (method === METHODS.unsubscribe) this.#subscriptions.unsubscribe(uri, errand);
    else this.#subscriptions.subscribe(uri, errand);
  }

  #cancel(peer: Peer, message: Notification): boolean {
    const span = findToken(message, REQUEST_ID);
    const flight = span && this.#inFlight.ofPeer(peer, rawAt(message.text, span));
    if (!flight || this.#inFlight.take(flight.id) === undefined) return true;
    flight.waiter.fail('proxy/cancelled');
    return this.#pipe.write(withToken(message, REQUEST_ID, flight.id).text);
  }

  #expired(flight: Flight): void {
    flight.waiter.fail('proxy/timeout');
    this.#tellCancelled(flight, 'timeout');
  }

  #abandonAll(peer: Peer, code: Code, reason: string): void {
    if (peer.unanswered === 0) return;
    for (const flight of this.#inFlight.of(peer)) {
      if (this.#inFlight.take(flight.id) === undefined) continue;
      flight.waiter.fail(code);
      this.#tellCancelled(flight, reason);
    }
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
    if (this.#pipe.write(message.text)) return;
    this.#log.warn({ kind: message.kind, pipe: this.#pipe.state }, 'the server could not be told');
  }

  /** One line of a server that may write anything: a fault here costs this line only. */
  #line(line: string): void {
    try {
      const read = readMessage(line);
      if (read === 'batch') this.#batch(line);
      else this.#take(read, line);
    } catch (error) {
      this.#log.error({ err: error }, 'a line of the server could not be handled');
    }
  }

  #take(read: Message | Unreadable, line: string): void {
    if (typeof read !== 'string') this.#routing.route(read);
    else if (!this.#failUnreadable(line, read) && line.trim() !== '') {
      this.#log.debug({ line: line.slice(0, LOG_EXCERPT), why: read }, 'skipped a line of the server');
    }
  }

  /** An answer that nobody may read ends its call at once, not when its time is over. */
  #failUnreadable(line: string, why: Unreadable): boolean {
    const flight = why === 'not-json' ? undefined : this.#inFlight.take(idMeantBy(line) ?? '');
    flight?.waiter.fail('proxy/bad-gateway');
    if (flight) this.#log.warn({ why }, 'the server gave an answer that cannot be passed on');
    return flight !== undefined;
  }

  /** Clients wait for the answers in it, whatever revision was agreed, so its messages are taken one by one. */
  #batch(line: string): void {
    if (!this.#toldOfBatches) {
      this.#toldOfBatches = true;
      this.#log.warn({}, 'the server writes several messages as one array, which only MCP 2025-03-26 allows');
    }
    for (const read of readBatch(line)) {
      if (typeof read === 'string')
        this.#log.warn({ why: read }, 'skipped an element of an array of the server');
      else this.#routing.route(read);
    }
  }
}
