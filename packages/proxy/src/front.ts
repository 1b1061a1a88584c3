import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import {
  endpointPath,
  type Backend,
  type Condition,
  type Front,
  type Health,
  type HttpBackend,
} from './backend/backend.ts';
import { Conversations } from './backend/http/conversations.ts';
import { Forward, SESSION_METHODS } from './backend/http/forward.ts';
import { ServerHealth, type HealthSettings } from './backend/http/server-health.ts';
import { sharedBy } from './backend/http/replicas.ts';
import type { SessionStore } from './backend/replicas/session-store.ts';
import type { SharedSessions } from './backend/replicas/shared-sessions.ts';
import { leave, Upstream } from './backend/http/upstream.ts';
import type { Asker, CarryOver } from './backend/modern/refusal.ts';
import type { OpenLink } from './backend/link.ts';
import { EraLink } from './backend/modern/era-link.ts';
import { Mux } from './backend/mux/mux.ts';
import { awaited, oneOff, type BackendPort, type Met, type Peer, type PortState } from './backend/port.ts';
import { Pipe } from './backend/stdio/pipe.ts';
import type { Call } from './call/call.ts';
import type { Step } from './call/chain.ts';
import { principalOf } from './call/principal.ts';
import { refuse } from './call/refuse.ts';
import { tellTrace } from './call/tell-trace.ts';
import type { AddressSettings } from './call/public-address.ts';
import type { Face } from './endpoint/face.ts';
import { Sse } from './endpoint/sse.ts';
import { StreamableHttp } from './endpoint/streamable-http.ts';
import type { UnreadBudget } from './endpoint/unread-budget.ts';
import { METHODS } from './message/methods.ts';
import { LEGACY_VERSIONS, MODERN_VERSION } from './message/protocol-version.ts';
import { idOf, requestOf, type JsonObject } from './message/json-rpc.ts';

export interface FrontOptions extends AddressSettings, HealthSettings {
  readonly remoteHealthChecks: boolean;
  /** Told when the server says that its tools are others than before, where messages are read. */
  readonly toolsChanged?: (() => void) | undefined;
  /** Told when how a server that speaks HTTP is has changed. */
  readonly onCondition?: ((condition: Condition) => void) | undefined;
  readonly backend: Backend;
  /** What clients of a stdio server speak; those of another speak what it does. */
  readonly mode: 'streamable-http' | 'sse';
  /** A server of streamable HTTP that has no sessions. */
  readonly stateless?: boolean | undefined;
  readonly signedIn: boolean;
  /** A step looks into messages, so bytes cannot be relayed as they are. */
  readonly looksInside: boolean;
  readonly requestTimeoutMs: number;
  readonly sessionTtlMs: number;
  /** Where replicas share the sessions of a server of streamable HTTP. */
  readonly sessionStore?: SessionStore | undefined;
  readonly skepVersion: string;
  readonly unread: UnreadBudget;
  readonly clock: Clock;
  readonly log: Log;
  /** For what may be said with each call. */
  readonly limited: Log;
}

/** What stands at the end of the chain. */
export function frontOf(options: FrontOptions): Front {
  const { backend, clock, skepVersion } = options;
  if (backend.kind === 'stdio') {
    const openPipe: OpenLink = (events) => new Pipe({ backend, clock, ...events });
    const mux = new Mux({
      ...options,
      open: (events) => new EraLink({ ...events, clock, skepVersion, open: openPipe }),
    });
    return new MessageFront(mux, options.mode, options);
  }
  const isStateless = options.stateless === true && backend.kind === 'http';
  const look = isStateless ? statusOfPing : statusOfRoot;
  const health = lookAfter(backend, options, (signal) => look(backend, upstream, signal));
  const token = backend.remote?.token;
  token?.follow((state) => health.signedIn(state));
  const upstream: Upstream = new Upstream(backend, options.clock, (status) => {
    // What is refused while no newer token can be had says nothing of who has to do something about it.
    if (status !== 401 || token?.state() !== 'auth_retrying') health.answered(status);
  });
  const front = httpFrontOf(backend, upstream, options);
  return withHealth(front, health, isStateless ? postsAlone(front.step) : front.step);
}

/** Looked at always where it runs here, and elsewhere where that is wanted: a look costs its owner something. */
function lookAfter(
  { remote }: HttpBackend,
  options: FrontOptions,
  look: (signal: AbortSignal) => Promise<number>,
): ServerHealth {
  const { remoteHealthChecks, onCondition = () => {} } = options;
  const isRemote = remote !== undefined;
  const probe = isRemote && !remoteHealthChecks ? {} : { probe: look };
  return new ServerHealth({ ...options, ...probe, isRemote, tell: onCondition });
}

async function statusOfRoot(
  { target }: HttpBackend,
  upstream: Upstream,
  signal: AbortSignal,
): Promise<number> {
  const reply = await upstream.send(new URL('/', target), { method: 'GET', headers: {}, quiet: true, signal })
    .reply;
  leave(reply);
  return reply.statusCode ?? 0;
}

/** As `statusOfRoot`, of a server that has nothing to GET. */
async function statusOfPing(backend: HttpBackend, upstream: Upstream, signal: AbortSignal): Promise<number> {
  const url = new URL(endpointPath(backend) + backend.target.search, backend.target);
  const { text: body } = requestOf('"skep-ping"', METHODS.ping, {});
  const headers = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
  const reply = await upstream.send(url, { method: 'POST', headers, body, quiet: true, signal }).reply;
  leave(reply);
  return reply.statusCode ?? 0;
}

/** What only sessions have is refused here. */
function postsAlone(step: Step): Step {
  return (call, next) => {
    if (!SESSION_METHODS.has(call.req.method ?? '')) return step(call, next);
    refuse(call.res, 'proxy/method-not-allowed', { headers: { Allow: 'POST, OPTIONS' } });
    return Promise.resolve();
  };
}

const WORD = { failing: 'unhealthy', unauthenticated: 'degraded', auth_retrying: 'degraded' } as const;

/** A front that also tells how the server behind it is. */
function withHealth(front: Front, health: ServerHealth, step: Step): Front {
  const { attach, answerer, greet, ask, askFor, backendEnded, backendStarted } = front;
  return {
    path: front.path,
    step,
    revisions: front.revisions,
    serves: front.serves,
    ...(attach && { attach }),
    ...(answerer && { answerer }),
    ...(greet && { greet }),
    ...(ask && { ask }),
    ...(askFor && { askFor }),
    health() {
      const { condition, seen } = health;
      const said = { ...front.health(), seen };
      return condition === 'fine' ? said : { ...said, status: WORD[condition], mcpAvailable: false };
    },
    backendEnded() {
      health.pause();
      backendEnded?.();
    },
    backendStarted() {
      health.pause();
      backendStarted?.();
    },
    drain: () => front.drain(),
    close() {
      health.close();
      front.close();
    },
  };
}

function httpFrontOf(backend: HttpBackend, upstream: Upstream, options: FrontOptions): Front {
  const { looksInside } = options;
  const shared = sharedBy(backend, { ...options, log: options.limited });
  const isReplicated = shared !== undefined;
  const conversations = new Conversations({ ...options, ...backend, upstream, isReplicated });
  const { kind } = backend;
  if (looksInside)
    return new MessageFront(conversations, kind === 'sse' ? 'sse' : 'streamable-http', {
      ...options,
      shared,
    });
  // Whoever runs the proxy has no client for the older transport.
  if (kind === 'sse') return new Forward({ ...options, backend, upstream, greeter: conversations });
  const messages = new MessageFront(conversations, 'streamable-http', { ...options, shared });
  return new RelayFront(
    (carryOver) => new Forward({ ...options, backend, upstream, carryOver, shared }),
    messages,
    conversations,
  );
}

const STATUS: Readonly<Record<PortState, Health['status']>> = {
  attached: 'healthy',
  attaching: 'degraded',
  lost: 'unhealthy',
};

/**
 * Bytes are relayed where client and server are of one family of revisions; between two families messages are carried over
 * (decision 0335).
 */
class RelayFront implements Front {
  readonly revisions = 'any';
  readonly path: string;
  readonly serves: readonly string[];
  readonly #relay: Forward;
  readonly #messages: MessageFront;
  readonly #conversations: Conversations;
  /** The server has refused a handshake, so it is a modern one, and only that. */
  #isModern = false;
  /** It has taken one: what it refuses within a session is refused for another reason. */
  #takesHandshakes = false;

  constructor(
    openRelay: (carryOver: CarryOver) => Forward,
    messages: MessageFront,
    conversations: Conversations,
  ) {
    this.#relay = openRelay({
      isNeeded: async (asker, refused) => {
        if (this.#isModern || (this.#takesHandshakes && refused === 'message')) return this.#isModern;
        const era = await this.#ask(asker, (peer) => conversations.meetByHandshake(peer));
        this.#isModern = era === 'modern';
        this.#takesHandshakes = era === 'legacy';
        return this.#isModern;
      },
      take: (call) => messages.step(call, () => Promise.resolve()),
    });
    this.path = this.#relay.path;
    this.serves = this.#relay.serves;
    this.#messages = messages;
    this.#conversations = conversations;
  }

  readonly step: Step = (call, next) => {
    const isModern = call.incoming?.era === 'modern';
    if (isModern && call.path === this.path) return this.#modernCall(call, next);
    return (this.#isModern && !isModern ? this.#messages : this.#relay).step(call, next);
  };

  /** The server is asked first which family it is of; of the calls of legacy clients that comes out where it refuses them. */
  async #modernCall(call: Call, next: () => Promise<void>): Promise<void> {
    const family = await this.#ask(call, (peer) => this.#conversations.meet(peer));
    // Its client may have gone while the server was met.
    if (call.res.destroyed) return;
    if (family === 'away') {
      refuse(call.res, 'proxy/backend-away', { id: call.incoming && idOf(call.incoming.message) });
      return;
    }
    await (family === 'legacy' ? this.#messages : this.#relay).step(call, next);
  }

  health(): Health {
    return this.#relay.health();
  }

  readonly backendEnded = (): void => {
    this.#relay.backendEnded();
    this.#messages.backendEnded();
  };

  readonly backendStarted = (): void => {
    this.#isModern = false;
    this.#takesHandshakes = false;
    this.#relay.backendStarted();
    this.#messages.backendStarted();
  };

  drain(): void {
    this.#relay.drain();
    this.#messages.drain();
  }

  close(): void {
    this.#relay.close();
    this.#messages.close();
  }

  /** Undefined for a server that cannot be met: it tells its client so itself. `away` for one that has ended meanwhile. */
  async #ask(
    { identity, credentials }: Asker,
    meet: (peer: Peer) => Promise<Met>,
  ): Promise<Met['era'] | 'away' | undefined> {
    if (identity === undefined) return undefined;
    try {
      return (await meet({ ...oneOff(), key: principalOf(identity), credentials })).era;
    } catch (error) {
      return hasCode(error, 'proxy/backend-away') || hasCode(error, 'proxy/backend-lost')
        ? 'away'
        : undefined;
    }
  }
}

/** Only streamable HTTP has the modern revision. */
function servedBy(mode: FrontOptions['mode']): readonly string[] {
  return mode === 'sse' ? LEGACY_VERSIONS : [MODERN_VERSION];
}

/** A face in front of a port. */
class MessageFront implements Front {
  readonly revisions = 'known';
  readonly path: string;
  readonly step: Step;
  readonly answerer: Face;
  readonly serves: readonly string[];
  readonly #port: BackendPort;
  readonly #face: Face;

  constructor(
    port: BackendPort,
    mode: FrontOptions['mode'],
    options: FrontOptions & { readonly shared?: SharedSessions | undefined },
  ) {
    const { backend } = options;
    const path = backend.kind === 'stdio' ? undefined : endpointPath(backend);
    const withPort = { ...options, backend: port, path };
    this.#port = port;
    this.#face = mode === 'sse' ? new Sse(withPort) : new StreamableHttp(withPort);
    this.answerer = this.#face;
    this.serves = servedBy(mode);
    this.path = this.#face.path;
    this.step = (call, next) => {
      tellTrace(call);
      return this.#face.step(call, next);
    };
  }

  readonly attach = (): Promise<void> => this.#port.attach();

  readonly greet = (): Promise<unknown> => this.#port.greet();

  readonly ask = (method: string, params: JsonObject): Promise<string> => this.#port.ask(method, params);

  readonly askFor = async (call: Call, method: string, params: JsonObject): Promise<string> => {
    const { identity, credentials } = call;
    if (identity === undefined) throw new SkepError('internal/bug');
    const peer: Peer = { ...oneOff(), kind: 'errand', key: principalOf(identity), credentials };
    await this.#port.meet(peer);
    const { promise, waiter } = awaited();
    this.#port.request(peer, requestOf('0', method, params), waiter);
    return promise;
  };

  health(): Health {
    const { state } = this.#port;
    return { status: STATUS[state], mcpAvailable: state === 'attached', transport: this.#face.transport };
  }

  /** Sessions stay until the server was started anew, so that clients hear why. */
  readonly backendEnded = (): void => this.#port.ended();

  readonly backendStarted = (): void => {
    this.#port.restarted();
    this.#face.endSessions();
  };

  drain(): void {
    this.#face.drain();
  }

  close(): void {
    this.#port.close();
    this.#face.close();
  }
}
