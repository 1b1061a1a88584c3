import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Timer } from '@skep/core/time/clock.ts';
import type { Credentials } from '../../call/call.ts';
import type { JsonObject, Notification, Request, Response } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { endpointPath, type HttpBackend } from '../backend.ts';
import { Mux, type MuxOptions } from '../mux/mux.ts';
import {
  saidBy,
  told,
  type BackendPort,
  type Met,
  type Newcomer,
  type Peer,
  type PortState,
  type Waiter,
} from '../port.ts';
import { EraLink } from '../modern/era-link.ts';
import { HttpLink } from './http-link.ts';
import { SseLink } from './sse-link.ts';
import type { Upstream } from './upstream.ts';

/** What the proxy itself opened to ask the server is closed when it asks no more. */
const OWN_IDLE_MS = 10_000;
/** Servers may keep something from one call to the next, and modern clients do not say when they have gone. */
const MODERN_IDLE_MS = 10 * 60_000;

/** What the proxy itself opened to ask the server: on its own behalf, or for the modern clients of one principal. */
interface Own {
  readonly mux: Mux;
  readonly idle: Timer;
  /** Questions that wait for an answer. */
  asked: number;
}

/** What the latest call of a conversation's client brought for the server. */
interface Shown {
  credentials: Credentials | undefined;
}

interface ConversationsOptions extends Omit<MuxOptions, 'open'>, HttpBackend {
  readonly upstream: Upstream;
}

/**
 * A server that speaks HTTP, behind the same port as one behind a pipe: each client has a session of its own with it, and a
 * mux of its own, so that servers can tell clients apart.
 */
export class Conversations implements BackendPort {
  readonly #options: ConversationsOptions;
  readonly #url: URL;
  readonly #open = new Set<Mux>();
  readonly #ofPeer = new Map<Peer, Mux>();
  /** By principal; empty for the proxy itself. */
  readonly #owns = new Map<string, Own>();
  /** What each shows the server. */
  readonly #shown = new WeakMap<Mux, Shown>();
  #state: PortState = 'attached';

  constructor(options: ConversationsOptions) {
    this.#options = options;
    this.#url = new URL(endpointPath(options) + options.target.search, options.target);
  }

  get state(): PortState {
    return this.#state;
  }

  /** There is nothing to attach to before there is a client. */
  attach(): Promise<void> {
    return Promise.resolve();
  }

  initialize(newcomer: Newcomer): () => void {
    if (this.#state === 'lost') {
      newcomer.fail('proxy/backend-away');
      return () => {};
    }
    let isWelcome = false;
    const mux = this.#converse(newcomer.credentials);
    const over = (): void => {
      if (!isWelcome) this.#end(mux);
    };
    const fail = (code: Code, said?: string): void => {
      over();
      newcomer.fail(code, said);
    };
    const joining: Newcomer = {
      id: newcomer.id,
      wanted: newcomer.wanted,
      welcome: (reply, version) => {
        const peer = newcomer.welcome(reply, version);
        isWelcome = peer !== undefined;
        if (peer) this.#belongsTo(mux, peer);
        else over();
        return peer;
      },
      refuse(reply) {
        over();
        newcomer.refuse(reply);
      },
      fail,
    };
    mux.attach().then(
      () => mux.initialize(joining),
      (error: unknown) => fail(codeOf(error), saidBy(error)),
    );
    return over;
  }

  listens(peer: Peer): void {
    const mux = this.#ofPeer.get(peer);
    if (mux) this.#show(mux, peer);
    mux?.listens();
  }

  leave(peer: Peer): void {
    const mux = this.#ofPeer.get(peer);
    if (mux === undefined) return;
    this.#show(mux, peer);
    this.#ofPeer.delete(peer);
    mux.leave(peer);
    if (peer.kind === 'listener') this.#rest(peer.key, mux);
    else this.#end(mux);
  }

  meet(peer: Peer): Promise<Met> {
    if (this.#state === 'lost') return Promise.reject(new SkepError('proxy/backend-away'));
    const own = this.#ownOf(peer.key);
    this.#show(own.mux, peer);
    return this.#asking(own, async () => {
      await own.mux.attach();
      return own.mux.meet();
    });
  }

  /**
   * The same of a server that is asked by a handshake of its own, as a legacy client asks: one of both families is a legacy server
   * then.
   */
  async meetByHandshake({ credentials }: Peer): Promise<Met> {
    const mux = this.#converse(credentials);
    try {
      await mux.attach();
      await mux.greet();
      return await mux.meet();
    } finally {
      this.#end(mux);
    }
  }

  join(peer: Peer): void {
    const own = this.#ownOf(peer.key);
    own.asked += 1;
    this.#ofPeer.set(peer, own.mux);
    this.#show(own.mux, peer);
    own.mux.join(peer);
    own.mux.listens();
  }

  gone(peer: Peer): void {
    this.#muxOf(peer)?.gone(peer);
  }

  request(peer: Peer, request: Request, waiter: Waiter): void {
    if (this.#state === 'lost') {
      waiter.fail('proxy/backend-away');
      return;
    }
    const own = isOfPrincipal(peer) ? this.#owns.get(peer.key) : undefined;
    const mux = this.#muxOf(peer);
    if (mux) this.#show(mux, peer);
    if (own !== undefined) {
      own.asked += 1;
      const rest = (): void => this.#rest(peer.key, own.mux);
      own.mux.request(peer, request, told(waiter, rest));
    } else if (mux !== undefined) mux.request(peer, request, waiter);
    else if (peer.kind === 'one-off') this.#once(peer, request, waiter);
    else waiter.fail('proxy/session-unknown');
  }

  notify(peer: Peer, message: Notification): boolean {
    if (this.#state === 'lost') return false;
    const mux = this.#ofPeer.get(peer);
    // What is said without a session concerns no session of the server.
    if (mux === undefined) return true;
    this.#show(mux, peer);
    const taken = mux.notify(peer, message);
    if (taken && message.method === METHODS.initialized && peer.listener?.live === true) mux.listens();
    return taken;
  }

  answer(peer: Peer, reply: Response): boolean {
    if (this.#state === 'lost') return false;
    const mux = this.#muxOf(peer);
    if (mux) this.#show(mux, peer);
    return mux?.answer(peer, reply) ?? true;
  }

  async greet(): Promise<unknown> {
    this.#endOwn('');
    const own = this.#ownOf('');
    return this.#asking(own, async () => {
      await own.mux.attach();
      return own.mux.greet();
    });
  }

  ask(method: string, params: JsonObject): Promise<string> {
    const own = this.#owns.get('');
    if (own === undefined) return Promise.reject(new SkepError('proxy/backend-away'));
    return this.#asking(own, () => own.mux.ask(method, params));
  }

  /** A server may take long; it is idle only when nothing is asked of it. */
  async #asking<T>(own: Own, work: () => Promise<T>): Promise<T> {
    own.asked += 1;
    try {
      return await work();
    } finally {
      own.asked -= 1;
      own.idle.restart();
    }
  }

  #ownOf(key: string): Own {
    const known = this.#owns.get(key);
    if (known !== undefined) return known;
    const own: Own = {
      mux: this.#converse(),
      asked: 0,
      idle: this.#options.clock.after(key === '' ? OWN_IDLE_MS : MODERN_IDLE_MS, () => {
        if (own.asked > 0) own.idle.restart();
        else if (this.#owns.get(key) === own) this.#endOwn(key);
      }),
    };
    this.#owns.set(key, own);
    return own;
  }

  /** One thing less is asked by `mux`. */
  #rest(key: string, mux: Mux): void {
    const own = this.#owns.get(key);
    if (own?.mux !== mux) return;
    own.asked -= 1;
    own.idle.restart();
  }

  #muxOf(peer: Peer): Mux | undefined {
    return isOfPrincipal(peer) ? this.#owns.get(peer.key)?.mux : this.#ofPeer.get(peer);
  }

  ended(): void {
    this.#state = 'lost';
    this.#endAll();
  }

  restarted(): void {
    this.#endAll();
    this.#state = 'attached';
  }

  close(): void {
    this.ended();
    this.#options.upstream.close();
  }

  #converse(credentials?: Credentials): Mux {
    const shown: Shown = { credentials };
    const { kind, clock, skepVersion, upstream } = this.#options;
    const url = this.#url;
    const mux: Mux = new Mux({
      ...this.#options,
      open(events) {
        const onBroken = (): void => {
          events.onBroken();
          forget();
        };
        const showing = { url, upstream, clock, credentials: () => shown.credentials };
        const options = { ...events, ...showing, onBroken };
        if (kind === 'sse') return new SseLink(options);
        return new EraLink({
          ...options,
          skepVersion,
          open: (inner) => new HttpLink({ ...inner, ...showing }),
        });
      },
    });
    const forget = (): void => this.#forget(mux);
    this.#open.add(mux);
    this.#shown.set(mux, shown);
    return mux;
  }

  /** From now on, and for what goes to the server at once. */
  #show(mux: Mux, { credentials }: Peer): void {
    const shown = this.#shown.get(mux);
    if (shown && credentials) shown.credentials = credentials;
  }

  #belongsTo(mux: Mux, peer: Peer): void {
    const before = this.#ofPeer.get(peer);
    this.#ofPeer.set(peer, mux);
    if (before !== undefined && before !== mux) this.#end(before);
  }

  /** A call of a client without a session gets one for as long as it lasts. */
  #once(peer: Peer, request: Request, waiter: Waiter): void {
    const mux = this.#converse(peer.credentials);
    this.#ofPeer.set(peer, mux);
    const ending = told(waiter, () => {
      this.#ofPeer.delete(peer);
      this.#end(mux);
    });
    mux
      .attach()
      .then(() => mux.greet())
      .then(
        () => mux.request(peer, request, ending),
        (error: unknown) => ending.fail(codeOf(error), saidBy(error)),
      );
  }

  /** The server ended the session; the client hears so at its next message. */
  #forget(mux: Mux): void {
    for (const [key, own] of this.#owns) if (own.mux === mux) this.#endOwn(key);
    for (const [peer, of] of this.#ofPeer) {
      if (of !== mux) continue;
      this.#ofPeer.delete(peer);
      peer.forgotten?.();
    }
    this.#end(mux);
  }

  #end(mux: Mux): void {
    if (this.#open.delete(mux)) mux.close();
  }

  #endOwn(key: string): void {
    const own = this.#owns.get(key);
    this.#owns.delete(key);
    own?.idle.cancel();
    if (own) this.#end(own.mux);
  }

  #endAll(): void {
    for (const key of this.#owns.keys()) this.#endOwn(key);
    this.#ofPeer.clear();
    for (const mux of this.#open) this.#end(mux);
  }
}

function isOfPrincipal({ kind }: Peer): boolean {
  return kind === 'call' || kind === 'errand';
}

function codeOf(error: unknown): Code {
  return error instanceof SkepError && error.code.startsWith('proxy/') ? error.code : 'proxy/bad-gateway';
}
