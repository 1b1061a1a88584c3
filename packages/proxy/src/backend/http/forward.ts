import type { IncomingMessage } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { tellAnswer, type Call } from '../../call/call.ts';
import type { Step } from '../../call/chain.ts';
import { refuse } from '../../call/refuse.ts';
import { bodyInTrace } from '../../call/tell-trace.ts';
import { idOf, type JsonObject } from '../../message/json-rpc.ts';
import { mayRefuse, readRefusal, whenRefused, type CarryOver } from '../modern/refusal.ts';
import { LEGACY_VERSIONS, MODERN_VERSION } from '../../message/protocol-version.ts';
import { publicAddress, type AddressSettings } from '../../call/public-address.ts';
import { endpointPath, type Front, type Health, type HttpBackend } from '../backend.ts';
import { limitedLog, type LimitedLog } from '../limited-log.ts';
import type { BackendPort } from '../port.ts';
import { Asking, limitOf } from './asking.ts';
import { EndpointEvents } from './endpoint-event.ts';
import { towardsBackend, towardsClient } from './hop-headers.ts';
import { shownIn } from './shown-in.ts';
import { MAX_OPENING_BYTES, RelayedSessions } from './relayed-sessions.ts';
import { readAlong } from './answer-reader.ts';
import { relay } from './relay.ts';
import { SessionOwners } from './session-owners.ts';
import { Replicas } from './replicas.ts';
import type { SharedSessions } from '../replicas/shared-sessions.ts';
import type { Pending } from './pending.ts';
import { isHandshake, keyOf, principalIn, sessionOf } from './told-of-call.ts';
import { endpointFor, leadsElsewhere, locationFor, withoutQuery, type Asked } from './told-address.ts';
import { isStream, leave, type Upstream } from './upstream.ts';

interface ForwardOptions extends AddressSettings {
  readonly backend: HttpBackend;
  readonly upstream: Upstream;
  /** Speaks with the server for whoever runs the proxy. */
  readonly greeter?: BackendPort;
  /** Where a modern server may refuse legacy clients; without it a refusal is the client's. */
  readonly carryOver?: CarryOver;
  /** Clients hold tokens, which are for this proxy alone, and sessions of their own. */
  readonly signedIn: boolean;
  readonly log: Log;
  readonly clock: Clock;
  readonly requestTimeoutMs: number;
  readonly sessionTtlMs: number;
  /** What other replicas of this proxy know of sessions; without it this one is alone. */
  readonly shared?: SharedSessions | undefined;
}

/** Whose the addresses of a server are where nobody signs in. */
const EVERYBODY = '';

/** What a stateless server does not offer. */
export const SESSION_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

/** Hands calls to a server that speaks HTTP itself: bytes pass as they are, replies as they come. */
export class Forward implements Front {
  readonly revisions = 'any';
  readonly serves: readonly string[];
  readonly path: string;
  readonly greet?: () => Promise<unknown>;
  readonly ask?: (method: string, params: JsonObject) => Promise<string>;
  readonly #options: ForwardOptions;
  readonly #log: LimitedLog;
  readonly #upstream: Upstream;
  readonly #sessions: RelayedSessions;
  readonly #replicas: Replicas | undefined;
  /** Each ends one reply to a GET. */
  readonly #streams = new Set<() => void>();
  readonly #owners = new SessionOwners();
  #lastUrl: { readonly path: string; readonly url: URL } | undefined;
  /** Its process has ended, and there is no other yet. */
  #hasEnded = false;
  /** Whether the last call reached the backend; undefined before the first. */
  #reachable: boolean | undefined;

  constructor(options: ForwardOptions) {
    this.#options = options;
    this.#log = limitedLog(options.log, options.clock);
    const { backend, greeter, shared } = options;
    this.#upstream = options.upstream;
    this.#sessions = new RelayedSessions(options.upstream, options);
    this.#replicas = shared && new Replicas(shared, this.#sessions, this.#owners);
    this.path = endpointPath(backend);
    this.serves = backend.kind === 'sse' ? LEGACY_VERSIONS : [MODERN_VERSION];
    if (greeter === undefined) return;
    this.greet = () => greeter.greet();
    this.ask = (method, params) => greeter.ask(method, params);
  }

  readonly backendEnded = (): void => {
    this.#hasEnded = true;
    this.#options.greeter?.ended();
  };

  readonly backendStarted = (): void => {
    this.#hasEnded = false;
    this.#options.greeter?.restarted();
  };

  health(): Health {
    const status = this.#reachable === false ? 'degraded' : 'healthy';
    return {
      status: this.#hasEnded ? 'unhealthy' : status,
      mcpAvailable: this.#hasEnded ? false : this.#reachable,
      transport: this.#options.backend.kind === 'sse' ? 'sse' : 'streamable-http',
    };
  }

  readonly step: Step = async (call) => {
    const { req, res } = call;
    if (call.replyHooks.length > 0) {
      throw new SkepError('internal/bug', { message: 'reply hooks need a backend that reads replies' });
    }
    const isModern = req.headers['mcp-protocol-version'] === MODERN_VERSION;
    if (isModern && SESSION_METHODS.has(req.method ?? '')) {
      refuse(res, 'proxy/method-not-allowed', { headers: { Allow: 'POST, OPTIONS' } });
      return;
    }
    const id = call.incoming && idOf(call.incoming.message);
    if (call.target === '') refuse(res, 'proxy/no-route');
    else if (!this.#isTheirs(call)) refuse(res, 'proxy/session-unknown', { id });
    else if (this.#hasEnded) refuse(res, 'proxy/backend-away', { id });
    else if (this.#replicas === undefined) await this.#send(call, await bodyInTrace(call));
    else await this.#sendShared(call, this.#replicas, id);
  };

  /** Of a session that this replica has not seen the others are asked first; without their answer nothing is sent. */
  async #sendShared(call: Call, replicas: Replicas, id: string | undefined): Promise<void> {
    const session = sessionOf(call.req);
    try {
      const url = this.#urlOf(this.#pathFor(call));
      const access = await replicas.accessTo({ session, principal: this.#principalOf(call), url });
      const { carryOver } = this.#options;
      if (access === 'own' && carryOver !== undefined) await carryOver.take(call);
      else if (access !== 'open') refuse(call.res, 'proxy/session-unknown', { id });
      else if (!call.res.destroyed) await this.#send(call, await bodyInTrace(call));
    } catch (error) {
      if (!hasCode(error, 'proxy/session-store-away')) throw error;
      refuse(call.res, error.code, { id });
    }
  }

  /** Ends the replies to GET: such a stream has no end of its own. */
  drain(): void {
    for (const end of this.#streams) end();
  }

  close(): void {
    this.#options.greeter?.close();
    this.drain();
    this.#log.close();
  }

  /** Resolves when the backend has taken the body, or will not. What waits for the answer holds only a small body. */
  #send(call: Call, body: Buffer): Promise<void> {
    const { req, res, prefix, incoming } = call;
    const { backend, trustProxyHeaders } = this.#options;
    const path = this.#pathFor(call);
    const url = this.#urlOf(path);
    const isSse = backend.kind === 'sse' && req.method === 'GET';
    const asked = { url, entrance: req.headers.host };
    const seen = isSse ? { ...publicAddress(call, this.#options), ...asked } : undefined;
    // A server that puts the prefix before the address of its stream and one whose path begins so look the same here.
    const told = isSse ? '' : prefix;
    const towards = towardsBackend(req, backend, { trustProxyHeaders, prefix: told });
    const headers = call.credentials === undefined ? towards : { ...towards, ...shownIn(call.credentials) };
    // What is packed cannot be looked into.
    if (isSse) delete headers['accept-encoding'];
    if (body.length > 0 || req.method === 'POST') headers['content-length'] = body.length;
    const method = req.method ?? 'GET';
    const session = sessionOf(req);
    const message = incoming?.message;
    const isOpening = message !== undefined && isHandshake(message);
    const pending: Pending = {
      res,
      prefix,
      asked,
      method,
      session,
      principal: this.#principalOf(call),
      id: message && idOf(message),
      seen,
      refused: whenRefused(call, this.#options.carryOver),
      answerHooks: call.answerHooks,
      opening:
        isOpening && body.length <= MAX_OPENING_BYTES ? { url, body: body.toString('utf8') } : undefined,
      isOpening,
    };
    const asking = new Asking(
      { url, path, method, headers, session, limit: limitOf(call, this.#options) },
      body,
      { upstream: this.#upstream, sessions: this.#sessions, clock: this.#options.clock },
      {
        answered: (reply) => {
          if (pending.refused !== undefined && mayRefuse(reply)) void this.#mayBeRefused(reply, pending);
          else this.#pass(reply, pending);
        },
        failed: (error) => this.#failed(pending, error),
      },
    );
    const end = (): void => asking.abort();
    if (method === 'GET') this.#streams.add(end);
    const inUse = method === 'GET' ? this.#whileUsed(session) : undefined;
    res.on('close', () => {
      inUse?.cancel();
      this.#streams.delete(end);
      if (!res.writableFinished) end();
    });
    return asking.taken;
  }

  /** A stream uses its session as long as it lasts, and nothing else may tell the other replicas so. */
  #whileUsed(session: string | undefined): Timer | undefined {
    const { clock, sessionTtlMs, shared } = this.#options;
    if (shared === undefined || session === undefined) return undefined;
    return clock.every(sessionTtlMs / 4, () => this.#sessions.has(session));
  }

  /** Clients ask for one path nearly always. */
  #urlOf(path: string): URL {
    if (this.#lastUrl?.path === path) return this.#lastUrl.url;
    const { target } = this.#options.backend;
    // The path of the target would be read as a host where it begins with two slashes.
    const url = URL.parse(`${target.origin}${path}`) ?? target;
    this.#lastUrl = { path, url };
    return url;
  }

  /** The path of a server elsewhere stands for whatever its clients ask, but for where its stream told them to POST. */
  #pathFor({ target, path, req }: Call): string {
    const { remote, kind, target: there } = this.#options.backend;
    if (remote === undefined || (kind === 'sse' && req.method !== 'GET')) return target;
    const queries = [there.search.slice(1), target.slice(path.length + 1)].filter((query) => query !== '');
    const where = there.pathname === '/' ? path : there.pathname;
    return queries.length === 0 ? where : `${where}?${queries.join('&')}`;
  }

  /**
   * Where clients sign in, a session is theirs alone who began it. A stream of HTTP with SSE is one session, and the address
   * that it told takes messages of nobody else; a server elsewhere gets them at no other address.
   */
  #isTheirs(call: Call): boolean {
    const { req, target } = call;
    const { kind } = this.#options.backend;
    const principal = this.#principalOf(call);
    if (principal === undefined) return true;
    if (kind === 'sse') return req.method === 'GET' || this.#owners.has(keyOf(target), principal);
    const session = sessionOf(req);
    return session === undefined || this.#owners.isOpenTo(session, principal);
  }

  /** Nothing of the answer goes to the client before its body is read, so that has a limit, too. */
  async #mayBeRefused(reply: IncomingMessage, pending: Pending): Promise<void> {
    const { clock, requestTimeoutMs } = this.#options;
    const limit = clock.after(requestTimeoutMs, () => reply.destroy(new SkepError('proxy/timeout')));
    try {
      const { isRefusal, body } = await readRefusal(reply).finally(() => limit.cancel());
      const isDone = isRefusal && (await pending.refused?.());
      if (isDone !== true) this.#pass(reply, pending, body);
    } catch (error) {
      this.#failed(pending, error);
    }
  }

  /** Who asks; undefined where that makes no difference. */
  #principalOf(call: Call): string | undefined {
    const { signedIn, backend } = this.#options;
    if (signedIn) return principalIn(call);
    return backend.remote && backend.kind === 'sse' ? EVERYBODY : undefined;
  }

  /** What a reply says of sessions: whose they are, and how they began. */
  #note({ statusCode = 0, headers }: IncomingMessage, pending: Pending): void {
    const { principal, session, method, opening } = pending;
    const isFine = statusCode < 300;
    if (method === 'DELETE' && session !== undefined) {
      if (!isFine && statusCode !== 404) return;
      this.#owners.forget(session);
      this.#sessions.forget(session);
      return;
    }
    const begun = headers['mcp-session-id'];
    if (!isFine) return;
    if (opening !== undefined && typeof begun === 'string')
      this.#sessions.begun(begun, { opening, principal });
    if (principal === undefined) return;
    for (const id of [session, typeof begun === 'string' ? begun : undefined])
      if (id !== undefined) this.#owners.claim(id, principal);
  }

  /** The address of messages as a client may know it; fails where what it sends would go to somebody else. */
  #told(address: string, seen: Asked, { res, principal }: Pending): string {
    const told = endpointFor(address, seen);
    if (principal === undefined) return told;
    const path = told.slice(
      told.startsWith(seen.forwardedOrigin ?? '') ? (seen.forwardedOrigin ?? '').length : 0,
    );
    if (leadsElsewhere(path))
      throw new SkepError('proxy/bad-gateway', { message: 'an address of another host' });
    // Whatever stands before this proxy takes the prefix away again, whoever put it there.
    const key = keyOf(path);
    for (const one of [key, key.startsWith(`${seen.prefix}/`) ? key.slice(seen.prefix.length) : key]) {
      this.#owners.claim(one, principal);
      res.once('close', () => this.#owners.forget(one));
    }
    return told;
  }

  /** The query of the address that its person gave may hold a key, and is no client's business. */
  #withoutOwn(location: string): string {
    const { remote, target } = this.#options.backend;
    return remote === undefined ? location : withoutQuery(location, target.search);
  }

  /** Other replicas hear of a session before its client does, which may go on with any of them. */
  #pass(reply: IncomingMessage, pending: Pending, body?: Readable): void {
    const telling = this.#replicas?.tell(reply, pending);
    if (telling === undefined) this.#relay(reply, pending, body);
    else void telling.then(() => this.#relay(reply, pending, body));
  }

  /** What a server answers may be anything; what cannot be passed on is answered as a bad gateway. */
  #relay(reply: IncomingMessage, pending: Pending, body: Readable = reply): void {
    const { res, prefix, asked, seen, session } = pending;
    const { backend, signedIn } = this.#options;
    const hasAddress = seen !== undefined && isStream(reply);
    // Clients know by these words that they have to begin anew.
    if (reply.statusCode === 404 && session !== undefined) {
      this.#note(reply, pending);
      leave(reply);
      refuse(res, 'proxy/session-unknown', { id: pending.id });
      return;
    }
    try {
      // A final status was due; Node passes 101 on where nothing is upgraded.
      const status = reply.statusCode ?? 0;
      if (status < 200)
        throw new SkepError('proxy/bad-gateway', { message: `the status ${status} ends no request` });
      // The reason phrase means nothing (RFC 9110 §15.1) and may hold what must not be sent on.
      const headers = towardsClient(reply.headers, backend, res.getHeader('vary'));
      // The server may call it otherwise by now.
      if (session !== undefined && headers['mcp-session-id'] !== undefined)
        headers['mcp-session-id'] = session;
      const { location } = reply.headers;
      if (location !== undefined)
        headers['location'] = locationFor(this.#withoutOwn(location), asked, prefix);
      if (signedIn) {
        if (location !== undefined && leadsElsewhere(String(headers['location'])))
          throw new SkepError('proxy/bad-gateway', { message: 'a redirect to another host' });
        // It would tell clients to sign in elsewhere.
        delete headers['www-authenticate'];
      }
      if (hasAddress) {
        delete headers['content-length'];
        const coding = reply.headers['content-encoding'] ?? 'identity';
        if (coding !== 'identity')
          throw new SkepError('proxy/bad-gateway', {
            message: 'a stream that was asked for unpacked is packed',
          });
      }
      this.#note(reply, pending);
      res.writeHead(status, headers);
    } catch (error) {
      reply.destroy();
      this.#failed(pending, error);
      return;
    }
    this.#reachable = true;
    const { answerHooks } = pending;
    if (answerHooks.length > 0) readAlong(body, reply.headers, (answer) => tellAnswer(answerHooks, answer));
    // What has an end goes out with its head; of a stream the first event may be long in coming.
    if (reply.headers['content-length'] === undefined) res.flushHeaders();
    const ended = (error: Error | null): void => {
      if (error) this.#log.debug({ err: error }, 'a reply ended early');
    };
    const length = body === reply ? Number(reply.headers['content-length'] ?? 0) : 0;
    if (!hasAddress) relay(body, res, { length, ended });
    else pipeline(body, new EndpointEvents((address) => this.#told(address, seen, pending)), res, ended);
  }

  #failed({ res, id }: Pending, error: unknown): void {
    if (res.destroyed || res.writableEnded) return;
    if (hasCode(error, 'proxy/session-store-away')) {
      refuse(res, error.code, { id });
      return;
    }
    const isLate = hasCode(error, 'proxy/timeout');
    // One call that takes long says nothing of the others.
    if (!isLate) this.#reachable = false;
    this.#log.warn(
      { err: error },
      isLate ? 'a call was not answered in time' : 'the backend gave no answer that can be passed on',
    );
    if (res.headersSent) res.destroy();
    else refuse(res, isLate ? error.code : 'proxy/bad-gateway', { id });
  }
}
