import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Credentials } from '../../call/call.ts';
import {
  notification,
  type JsonObject,
  type Notification,
  type Request,
  type Response,
} from '../../message/json-rpc.ts';
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
  type ReplicatedPort,
  type ServerSession,
  type Waiter,
} from '../port.ts';
import { EraLink } from '../modern/era-link.ts';
import { HttpLink } from './http-link.ts';
import { OwnConversations } from './own-conversations.ts';
import { SseLink } from './sse-link.ts';
import type { Upstream } from './upstream.ts';

/** What the latest call of a conversation's client brought for the server. */
interface Shown {
  credentials: Credentials | undefined;
}

interface ConversationsOptions extends Omit<MuxOptions, 'open'>, HttpBackend {
  readonly upstream: Upstream;
}

/** What a conversation begins with. */
interface Beginning {
  readonly credentials?: Credentials | undefined;
  /** It is of a session, which other replicas may serve, too. */
  readonly isReplicated?: boolean;
  /** As another replica left it. */
  readonly adopted?: ServerSession | undefined;
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
  readonly #owns: OwnConversations;
  /** What each shows the server. */
  readonly #shown = new WeakMap<Mux, Shown>();
  #state: PortState = 'attached';
  readonly replicated?: ReplicatedPort;

  constructor(options: ConversationsOptions) {
    this.#options = options;
    this.#owns = new OwnConversations({
      clock: options.clock,
      open: () => this.#converse(),
      end: (mux) => this.#end(mux),
    });
    if (options.isReplicated === true)
      this.replicated = {
        adopt: (peer, session) => this.#adopt(peer, session),
        letGo: (peer) => this.#leave(peer, 'elsewhere'),
        deaf: (peer) => this.#ofPeer.get(peer)?.deaf(),
      };
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
    const { credentials } = newcomer;
    const { isReplicated = false } = this.#options;
    const mux = this.#converse({ credentials, isReplicated });
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
        const peer = newcomer.welcome(reply, version, mux.session() ?? null);
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
    this.#leave(peer);
  }

  #leave(peer: Peer, goesOn?: 'elsewhere'): void {
    const mux = this.#ofPeer.get(peer);
    if (mux === undefined) return;
    this.#show(mux, peer);
    this.#ofPeer.delete(peer);
    mux.leave(peer);
    if (peer.kind === 'listener') this.#owns.rest(peer.key, mux);
    else this.#end(mux, goesOn);
  }

  /** What a server without sessions agreed to is asked anew, for this replica. */
  async #adopt(peer: Peer, session: ServerSession | null): Promise<void> {
    if (this.#state === 'lost') throw new SkepError('proxy/backend-away');
    const { credentials } = peer;
    const mux = this.#converse({ credentials, isReplicated: true, adopted: session ?? undefined });
    this.#belongsTo(mux, peer);
    mux.join(peer);
    try {
      await mux.attach();
      if (session === null) await mux.greet();
      if (session === null) mux.notify(peer, notification(METHODS.initialized, {}));
    } catch (error) {
      this.#leave(peer, 'elsewhere');
      throw error;
    }
  }

  meet(peer: Peer): Promise<Met> {
    if (this.#state === 'lost') return Promise.reject(new SkepError('proxy/backend-away'));
    const own = this.#owns.of(peer.key);
    this.#show(own.mux, peer);
    return this.#owns.asking(own, async () => {
      await own.mux.attach();
      return own.mux.meet();
    });
  }

  /**
   * The same of a server that is asked by a handshake of its own, as a legacy client asks: one of both families is a legacy server
   * then.
   */
  async meetByHandshake({ credentials }: Peer): Promise<Met> {
    const mux = this.#converse({ credentials });
    try {
      await mux.attach();
      await mux.greet();
      return await mux.meet();
    } finally {
      this.#end(mux);
    }
  }

  join(peer: Peer): void {
    const own = this.#owns.of(peer.key);
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
      const rest = (): void => this.#owns.rest(peer.key, own.mux);
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
    this.#owns.end('');
    const own = this.#owns.of('');
    return this.#owns.asking(own, async () => {
      await own.mux.attach();
      return own.mux.greet();
    });
  }

  ask(method: string, params: JsonObject): Promise<string> {
    const own = this.#owns.get('');
    if (own === undefined) return Promise.reject(new SkepError('proxy/backend-away'));
    return this.#owns.asking(own, () => own.mux.ask(method, params));
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

  #converse({ credentials, isReplicated = false, adopted }: Beginning = {}): Mux {
    const shown: Shown = { credentials };
    const { kind, clock, skepVersion, upstream } = this.#options;
    const url = this.#url;
    const renewed: Peer['renewed'] = (begin) =>
      this.#peerOf(mux)?.renewed?.(begin) ?? Promise.resolve(undefined);
    const replicated = isReplicated ? { renewed, adopted } : {};
    const mux: Mux = new Mux({
      ...this.#options,
      isReplicated,
      open(events) {
        const onBroken = (): void => {
          events.onBroken();
          forget();
        };
        const showing = { url, upstream, clock, credentials: () => shown.credentials };
        const options = { ...events, ...showing, onBroken };
        if (kind === 'sse') return new SseLink(options);
        // What it speaks is known.
        if (adopted !== undefined) return new HttpLink({ ...options, ...replicated });
        return new EraLink({
          ...options,
          skepVersion,
          open: (inner) => new HttpLink({ ...inner, ...showing, ...replicated }),
        });
      },
    });
    const forget = (): void => this.#forget(mux);
    this.#open.add(mux);
    this.#shown.set(mux, shown);
    return mux;
  }

  #peerOf(mux: Mux): Peer | undefined {
    for (const [peer, of] of this.#ofPeer) if (of === mux) return peer;
    return undefined;
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
    const mux = this.#converse({ credentials: peer.credentials });
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
    this.#owns.endThat(mux);
    for (const [peer, of] of this.#ofPeer) {
      if (of !== mux) continue;
      this.#ofPeer.delete(peer);
      peer.forgotten?.();
    }
    this.#end(mux, 'elsewhere');
  }

  #end(mux: Mux, goesOn?: 'elsewhere'): void {
    if (this.#open.delete(mux)) mux.close(goesOn);
  }

  #endAll(): void {
    this.#owns.endAll();
    if (this.replicated)
      for (const [{ kind }, mux] of this.#ofPeer) if (kind === 'session') this.#end(mux, 'elsewhere');
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
