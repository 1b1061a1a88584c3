import {
  Agent,
  request,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Call } from '../../call/call.ts';
import type { Step } from '../../call/chain.ts';
import { refuse } from '../../call/refuse.ts';
import { idOf, type JsonObject } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { mayRefuse, readRefusal } from '../modern/refusal.ts';
import { LEGACY_VERSIONS, MODERN_VERSION } from '../../message/protocol-version.ts';
import { publicAddress, type AddressSettings } from '../../call/public-address.ts';
import { ENDPOINT_PATHS, type Front, type Health, type HttpBackend } from '../backend.ts';
import { limitedLog, type LimitedLog } from '../limited-log.ts';
import type { BackendPort } from '../port.ts';
import { principalOf } from '../../call/principal.ts';
import {
  EndpointEvents,
  endpointFor,
  isEntrance,
  leadsElsewhere,
  onlyPath,
  type Asked,
} from './endpoint-event.ts';
import { SessionOwners } from './session-owners.ts';

interface ForwardOptions extends AddressSettings {
  readonly backend: HttpBackend;
  /** Speaks with the server for whoever runs the proxy. */
  readonly greeter?: BackendPort;
  /** Takes a handshake that the server refused as a modern one does; without it the refusal is the client's. */
  readonly carryOver?: (call: Call) => Promise<void>;
  /** Clients hold tokens, which are for this proxy alone, and sessions of their own. */
  readonly signedIn: boolean;
  readonly log: Log;
  readonly clock: Clock;
}

/** A call that waits for its answer. */
interface Pending {
  readonly res: ServerResponse;
  /** See `Call`. */
  readonly prefix: string;
  /** What the backend is asked for, and where the client came in. */
  readonly asked: Omit<Asked, 'prefix' | 'forwardedOrigin'>;
  readonly method: string | undefined;
  /** Who asks, and the session that they name; absent where nobody signs in. */
  readonly asker: { readonly principal: string; readonly session: string | undefined } | undefined;
  /** Raw JSON text; undefined where no answer is due. */
  readonly id: string | undefined;
  /** Where the request is legacy: what to do when a modern server refuses it. */
  readonly refused: (() => void) | undefined;
  /** For the address that an event stream hands the client; undefined where streams are passed on as they are. */
  readonly seen: Asked | undefined;
}

/** What a modern, stateless server does not offer. */
const SESSION_METHODS = new Set(['GET', 'HEAD', 'DELETE']);

/** Hands calls to a server that speaks HTTP itself: bytes pass as they are, replies as they come. */
export class Forward implements Front {
  readonly revisions = 'any';
  readonly serves: readonly string[];
  readonly path: string;
  readonly greet?: () => Promise<unknown>;
  readonly ask?: (method: string, params: JsonObject) => Promise<string>;
  readonly backendEnded?: () => void;
  readonly backendStarted?: () => void;
  readonly #options: ForwardOptions;
  readonly #log: LimitedLog;
  readonly #agent = new Agent({ keepAlive: true, scheduling: 'lifo' });
  readonly #streams = new Set<ClientRequest>();
  readonly #owners = new SessionOwners();
  /** Whether the last call reached the backend; undefined before the first. */
  #reachable: boolean | undefined;

  constructor(options: ForwardOptions) {
    this.#options = options;
    this.#log = limitedLog(options.log, options.clock);
    const { backend, greeter } = options;
    this.path = ENDPOINT_PATHS[backend.kind];
    this.serves = backend.kind === 'sse' ? LEGACY_VERSIONS : [MODERN_VERSION];
    if (greeter === undefined) return;
    this.greet = () => greeter.greet();
    this.ask = (method, params) => greeter.ask(method, params);
    this.backendEnded = () => greeter.ended();
    this.backendStarted = () => greeter.restarted();
  }

  health(): Health {
    return {
      status: this.#reachable === false ? 'degraded' : 'healthy',
      mcpAvailable: this.#reachable,
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
    if (call.target === '') refuse(res, 'proxy/no-route');
    else if (!this.#isTheirs(call))
      refuse(res, 'proxy/session-unknown', { id: call.incoming && idOf(call.incoming.message) });
    else await this.#send(call, await call.readBody());
  };

  /** Ends the replies to GET: such a stream has no end of its own. */
  drain(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  close(): void {
    this.#options.greeter?.close();
    this.drain();
    this.#agent.destroy();
    this.#log.close();
  }

  /** Resolves when the backend has taken the body, or will not. What waits for the answer does not hold the body. */
  #send(call: Call, body: Buffer): Promise<void> {
    const { req, res, prefix, target: path, incoming } = call;
    const { backend, trustProxyHeaders } = this.#options;
    const { target } = backend;
    // The path of the target would be read as a host where it begins with two slashes.
    const url = URL.parse(`${target.origin}${path}`) ?? target;
    const isSse = backend.kind === 'sse' && req.method === 'GET';
    const asked = { url, entrance: req.headers.host };
    const seen = isSse ? { ...publicAddress(call, this.#options), ...asked } : undefined;
    const id = incoming && idOf(incoming.message);
    const asker = this.#askerOf(call);
    const refused = this.#whenRefused(call);
    const pending: Pending = { res, prefix, asked, method: req.method, asker, id, seen, refused };
    const headers = towardsBackend(req, target, trustProxyHeaders);
    // A server that puts the prefix before the address of its stream and one whose path begins so look the same here.
    if (prefix !== '' && !isSse) headers['x-forwarded-prefix'] = prefix;
    // What is packed cannot be looked into.
    if (isSse) delete headers['accept-encoding'];
    if (body.length > 0 || req.method === 'POST') headers['content-length'] = body.length;
    const upstream = request({
      host: target.hostname.replace(/^\[|\]$/gu, ''),
      port: target.port === '' ? 80 : target.port,
      method: req.method,
      path,
      headers,
      agent: this.#agent,
    });
    if (req.method === 'GET') this.#streams.add(upstream);
    res.once('close', () => {
      this.#streams.delete(upstream);
      if (!res.writableFinished) upstream.destroy();
    });
    let answered = false;
    upstream.once('response', (reply) => {
      answered = true;
      if (refused !== undefined && mayRefuse(reply)) void this.#mayBeRefused(reply, pending);
      else this.#relay(reply, pending);
    });
    // Nobody asked for another protocol, so there is no answer in it.
    upstream.once('upgrade', (_reply, socket) => void socket.destroy());
    upstream.once('error', (error) => this.#failed(pending, error));
    upstream.once('close', () => {
      if (!answered) this.#failed(pending, new SkepError('proxy/bad-gateway'));
    });
    return new Promise((resolve) => {
      upstream.once('close', () => resolve());
      upstream.end(body, () => resolve());
    });
  }

  /**
   * Where clients sign in, a session is theirs alone who began it. A stream of HTTP with SSE is one
   * session, and the address that it told takes messages of nobody else.
   */
  #isTheirs(call: Call): boolean {
    const { req, target } = call;
    const { signedIn, backend } = this.#options;
    if (!signedIn) return true;
    const principal = principalIn(call);
    if (backend.kind === 'sse') return req.method === 'GET' || this.#owners.has(keyOf(target), principal);
    const session = sessionOf(req);
    return session === undefined || this.#owners.isOpenTo(session, principal);
  }

  /** Only a handshake is held for it, which is small: any other message has a session that is none. */
  #whenRefused(call: Call): Pending['refused'] {
    const { carryOver } = this.#options;
    const { incoming, req, res } = call;
    if (carryOver === undefined || incoming?.era !== 'legacy') return undefined;
    const { message } = incoming;
    if (message.kind === 'request' && message.method === METHODS.initialize)
      return () =>
        void carryOver(call).catch((error: unknown) =>
          res.destroy(error instanceof Error ? error : undefined),
        );
    const id = idOf(message);
    return sessionOf(req) === undefined ? undefined : () => refuse(res, 'proxy/session-unknown', { id });
  }

  async #mayBeRefused(reply: IncomingMessage, pending: Pending): Promise<void> {
    try {
      const { isRefusal, body } = await readRefusal(reply);
      if (isRefusal) pending.refused?.();
      else this.#relay(reply, pending, body);
    } catch (error) {
      this.#failed(pending, error);
    }
  }

  #askerOf(call: Call): Pending['asker'] {
    if (!this.#options.signedIn) return undefined;
    return { principal: principalIn(call), session: sessionOf(call.req) };
  }

  /** What a reply says of whose a session is. */
  #note({ statusCode = 0, headers }: IncomingMessage, { asker, method }: Pending): void {
    if (asker === undefined) return;
    const { principal, session } = asker;
    const isFine = statusCode < 300;
    if (method === 'DELETE' && session !== undefined) {
      if (isFine || statusCode === 404) this.#owners.forget(session);
      return;
    }
    const begun = headers['mcp-session-id'];
    for (const id of [session, typeof begun === 'string' ? begun : undefined])
      if (isFine && id !== undefined) this.#owners.claim(id, principal);
  }

  /** The address of messages as a client may know it; fails where its token would go to somebody else. */
  #told(address: string, seen: Asked, { res, asker }: Pending): string {
    const told = endpointFor(address, seen);
    if (asker === undefined) return told;
    const path = told.slice(
      told.startsWith(seen.forwardedOrigin ?? '') ? (seen.forwardedOrigin ?? '').length : 0,
    );
    if (leadsElsewhere(path))
      throw new SkepError('proxy/bad-gateway', { message: 'an address of another host' });
    // Whatever stands before this proxy takes the prefix away again, whoever put it there.
    const key = keyOf(path);
    for (const one of [key, key.startsWith(`${seen.prefix}/`) ? key.slice(seen.prefix.length) : key]) {
      this.#owners.claim(one, asker.principal);
      res.once('close', () => this.#owners.forget(one));
    }
    return told;
  }

  /** What a server answers may be anything; what cannot be passed on is answered as a bad gateway. */
  #relay(reply: IncomingMessage, pending: Pending, body: Readable = reply): void {
    const { res, prefix, asked, seen, asker } = pending;
    const isStream = /^text\/event-stream\b/iu.test(reply.headers['content-type'] ?? '');
    const hasAddress = seen !== undefined && isStream;
    try {
      // A final status was due; Node passes 101 on where nothing is upgraded.
      const status = reply.statusCode ?? 0;
      if (status < 200)
        throw new SkepError('proxy/bad-gateway', { message: `the status ${status} ends no request` });
      // The reason phrase means nothing (RFC 9110 §15.1) and may hold what must not be sent on.
      const headers = towardsClient(reply.headers, res.getHeader('vary'));
      const { location } = reply.headers;
      if (location !== undefined) headers['location'] = locationFor(location, asked, prefix);
      if (asker !== undefined) {
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
    res.flushHeaders();
    const ended = (error: Error | null): void => {
      if (error) this.#log.debug({ err: error }, 'a reply ended early');
    };
    if (!hasAddress) pipeline(body, res, ended);
    else pipeline(body, new EndpointEvents((address) => this.#told(address, seen, pending)), res, ended);
  }

  #failed({ res, id }: Pending, error: unknown): void {
    if (res.destroyed || res.writableEnded) return;
    this.#reachable = false;
    this.#log.warn({ err: error }, 'the backend gave no answer that can be passed on');
    if (res.headersSent) res.destroy();
    else refuse(res, 'proxy/bad-gateway', { id });
  }
}

/** Meant for one hop only (RFC 9110 §7.6.1), besides what `Connection` names. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Set by the proxy itself, whatever the client claims. */
const FORWARDED = new Set([
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
]);

function kept(headers: IncomingHttpHeaders, drop: (name: string) => boolean): OutgoingHttpHeaders {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const entries = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !HOP_BY_HOP.has(name) && !named.has(name) && !drop(name),
  );
  return Object.fromEntries(entries);
}

/** The client's headers as the backend gets them (docs/behaviour/proxy.md#forwarding, local backends). */
function towardsBackend(req: IncomingMessage, target: URL, trustProxyHeaders: boolean): OutgoingHttpHeaders {
  const { headers, socket } = req;
  const before = trustProxyHeaders ? headers['x-forwarded-for'] : undefined;
  const client = socket.remoteAddress ?? 'unknown';
  return {
    ...kept(headers, (name) => FORWARDED.has(name) || name === 'host' || name === 'expect'),
    host: target.host,
    'x-forwarded-for': before === undefined ? client : `${String(before)}, ${client}`,
    ...(headers.host === undefined ? {} : { 'x-forwarded-host': headers.host }),
    'x-forwarded-proto': 'http',
  };
}

/**
 * The backend's headers as the client gets them. CORS is the proxy's own business, so it is never doubled; what the
 * proxy's answer varies by (`ownVary`) is named beside what the backend's does, or a cache would mix origins.
 */
function towardsClient(headers: IncomingHttpHeaders, ownVary: unknown): OutgoingHttpHeaders {
  const passed = kept(headers, (name) => name.startsWith('access-control-'));
  if (typeof ownVary !== 'string') return passed;
  return { ...passed, vary: headers.vary === undefined ? ownVary : `${ownVary}, ${headers.vary}` };
}

/**
 * Where a redirect of the backend leads clients: to the backend's own paths by the way that they came, never around the
 * proxy nor to whatever else stands at their entrance. Addresses of others are as the backend says.
 */
export function locationFor(
  location: string,
  { url, entrance }: Pick<Asked, 'url' | 'entrance'>,
  prefix: string,
): string {
  const there = URL.parse(location, url.href);
  if (there === null || (there.origin !== url.origin && !isEntrance(there.host, entrance))) return location;
  return `${prefix}${prefix === '' ? onlyPath(there.pathname) : there.pathname}${there.search}${there.hash}`;
}

function principalIn({ identity }: Call): string {
  if (identity === undefined) throw new SkepError('internal/bug');
  return principalOf(identity);
}

/** The session that a request names (MCP 2025-11-25, session management). */
function sessionOf({ headers }: IncomingMessage): string | undefined {
  const id = headers['mcp-session-id'];
  return typeof id === 'string' ? id : undefined;
}

/** As clients may write an address in more than one way. */
function keyOf(target: string): string {
  const there = URL.parse(`http://server.invalid${target}`);
  return there === null ? target : `${there.pathname}${there.search}`;
}
