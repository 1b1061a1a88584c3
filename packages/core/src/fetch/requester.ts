import {
  Agent as HttpAgent,
  request as httpRequest,
  type ClientRequestArgs,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { SkepError } from '../errors/skep-error.ts';
import { errnoOf } from '../files/errno.ts';
import { redactUrl } from '../log/redact.ts';
import { checkHost, guardedLookup, type Resolve } from './address-guard.ts';
import { trustedWith } from './ca-bundle.ts';
import { bare, openTunnel, proxyFor, type ForwardProxies } from './tunnel.ts';

/** Proxies count only where private addresses are allowed: they resolve names unseen by the guard. */
export interface Connections extends Partial<ForwardProxies> {
  /** False refuses non-public addresses, also behind host names and redirects. */
  readonly allowPrivate: boolean;
  /** Replaces the system's resolver where addresses are guarded. */
  readonly resolve?: Resolve | undefined;
  /** Extra certificate authorities, PEM (readCaBundle). */
  readonly ca?: readonly string[] | undefined;
  /** These alone, and no public ones. */
  readonly onlyCa?: readonly string[] | undefined;
  /** False only where a person has switched the check of certificates off. */
  readonly verify?: boolean;
}

/** What says who asks. */
export interface Shown {
  readonly headers: Readonly<Record<string, string>>;
  readonly identity?: ClientIdentity;
}

/** Certificate and key, PEM, for TLS. */
export interface ClientIdentity {
  readonly cert: string;
  readonly key: string;
}

export interface Sending {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: string | undefined;
  /** Asked for each address, so that credentials never travel to another one. */
  readonly showTo: (url: URL) => Shown | Promise<Shown>;
  /** `answer` hands a redirect to the caller as it is. */
  readonly redirects: 'follow' | 'answer';
  readonly signal: AbortSignal;
}

export interface StreamedAnswer {
  readonly status: number;
  /** Lower-case names; the first value of a repeated header, all of `www-authenticate` (RFC 9110 §5.3). */
  readonly headers: Readonly<Record<string, string>>;
  /** As it was sent. Must be read to its end, or `drop` called. */
  readonly body: Readable;
  /** Ends a body that nobody wants. */
  readonly drop: () => void;
  /** After redirects. */
  readonly url: URL;
}

/** All requests of Skep itself go out here; proxied traffic does not. */
export interface Requester {
  /**
   * Any status is an answer. Fails with `fetch/refused-address`, `-invalid-url`, `-unreachable` or, after too many
   * redirects, `-bad-status`, or with the signal's reason.
   */
  send(url: URL, sending: Sending): Promise<StreamedAnswer>;
  /** Ends all connections. Idempotent. */
  close(): void;
}

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const CONNECT_MS = 15_000;
/** Longest silence of a server, before its answer and in the middle of it. */
const SILENCE_MS = 60_000;
/** A connection that idles longer may be ended by its server just as the next request is sent. */
const IDLE_MS = 4_000;

export function openRequester(connections: Connections): Requester {
  const agents = new Map<string, HttpAgent>();
  const agentFor = (url: URL, identity?: ClientIdentity): HttpAgent => {
    const proxy = connections.allowPrivate ? proxyFor(url, connections) : undefined;
    // Connections show their certificate, so those of one identity are apart from all others.
    const key = `${url.protocol} ${proxy?.href ?? ''} ${identity?.cert ?? ''}`;
    const agent = agents.get(key) ?? createAgent(url.protocol === 'https:', connections, { identity, proxy });
    agents.set(key, agent);
    return agent;
  };
  return {
    async send(first, { redirects, showTo, ...sending }) {
      let url = first;
      for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
        // An address in the URL is never looked up, so the guard does not see it.
        if (!connections.allowPrivate) checkHost(url);
        const { headers, identity } = await showTo(url);
        const answer = await sendOnce(url, { ...sending, headers, agent: agentFor(url, identity) });
        const { location } = answer.headers;
        if (redirects === 'answer' || !REDIRECTS.has(answer.status) || location === undefined) return answer;
        answer.drop();
        url = redirectTarget(url, location);
      }
      throw new SkepError('fetch/bad-status', { message: `"${shownUrl(first)}" redirects too often` });
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}

/**
 * Runs `action` under a deadline of its own beside `signal`. Fails with `fetch/timeout`, with the signal's reason, or as
 * `action` does.
 */
export async function withDeadline<T>(
  { url, timeoutMs, signal }: { url: URL; timeoutMs: number; signal: AbortSignal | undefined },
  action: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    return await action(signal === undefined ? deadline : AbortSignal.any([signal, deadline]));
  } catch (cause) {
    signal?.throwIfAborted();
    if (!deadline.aborted) throw asFetchError(cause, url);
    const message = `"${shownUrl(url)}" did not answer within ${timeoutMs} ms`;
    throw new SkepError('fetch/timeout', { message, cause });
  }
}

/** For messages: without user information and query, either may hold a secret. */
export function shownUrl(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}

function createAgent(
  secure: boolean,
  { allowPrivate, resolve, ca, onlyCa, verify = true }: Connections,
  { identity, proxy }: { identity: ClientIdentity | undefined; proxy: URL | undefined },
): HttpAgent {
  const authorities = onlyCa ?? (ca === undefined ? undefined : trustedWith(ca));
  const trusted = authorities === undefined ? {} : { ca: [...authorities] };
  const tls = { ...trusted, ...identity, rejectUnauthorized: verify, minVersion: 'TLSv1.2' as const };
  const pool = { keepAlive: true, timeout: IDLE_MS };
  const guard = allowPrivate ? {} : { lookup: guardedLookup(resolve) };
  const agent = secure ? new HttpsAgent({ ...pool, ...guard, ...tls }) : new HttpAgent({ ...pool, ...guard });
  if (proxy === undefined) return agent;
  agent.createConnection = ({ host, port, servername }: Dialled, done) => {
    const to = { host: host ?? '', port: Number(port) };
    openTunnel(proxy, to, { ...trusted, timeoutMs: CONNECT_MS })
      // An address is no server name: its certificate is compared with the host, else with that of the proxy.
      .then((socket) =>
        secure ? connectTls({ ...tls, socket, host: to.host, servername: servername ?? '' }) : socket,
      )
      .then(
        (socket) => done?.(null, socket),
        // The type demands a stream where Node takes none.
        (cause: Error) => (done as ((error: Error) => void) | undefined)?.(cause),
      );
    return undefined;
  };
  return agent;
}

/** What an agent is given to connect to. */
interface Dialled extends ClientRequestArgs {
  readonly servername?: string;
}

interface SendingOnce extends Omit<Sending, 'showTo' | 'redirects'> {
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: HttpAgent;
}

async function sendOnce(url: URL, { body: sent, ...sending }: SendingOnce): Promise<StreamedAnswer> {
  try {
    const body = await receiveHead(url, sending, sent);
    const headers = Object.entries(body.headersDistinct).map(([name, values = []]) => [
      name,
      name === 'www-authenticate' ? values.join(', ') : (values[0] ?? ''),
    ]);
    // Destroying it is an error to whoever reads it, which is nobody.
    const drop = (): void => void body.on('error', () => undefined).destroy();
    const status = body.statusCode ?? 502;
    return { status, headers: Object.fromEntries(headers) as Record<string, string>, body, drop, url };
  } catch (cause) {
    sending.signal.throwIfAborted();
    throw asFetchError(cause, url);
  }
}

function receiveHead(
  url: URL,
  options: Omit<SendingOnce, 'body'>,
  sent: string | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { protocol, port, pathname, search } = url;
    // Node would make a login of the user information of an URL.
    const to = { protocol, port, path: pathname + search, hostname: bare(url.hostname) };
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)({ ...to, ...options });
    let answer: IncomingMessage | undefined;
    const end = (): void => void request.destroy(unreachable(url, 'ETIMEDOUT'));
    request.on('error', reject).on('response', (response) => resolve((answer = response)));
    request.on('socket', (socket) => {
      // What would listen for the start of a kept connection would listen for ever.
      if (socket.connecting) {
        const connecting = setTimeout(end, CONNECT_MS);
        const connected = (): void => clearTimeout(connecting);
        socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', connected).once('close', connected);
      }
      const onSilence = (): void => {
        // A body that waits for its reader is no silence of the server.
        if ((answer?.readableLength ?? 0) > 0) socket.setTimeout(SILENCE_MS);
        else end();
      };
      socket.setTimeout(SILENCE_MS).on('timeout', onSilence);
      // Node listens no longer once an answer has arrived whole, but cancelling it while it is read is still an error of the
      // socket, which would end the process.
      const onError = (): void => undefined;
      socket.on('error', onError);
      request.once('close', () => socket.off('timeout', onSilence).off('error', onError));
    });
    request.end(sent);
  });
}

/** Never from https to http: what was protected would travel in the clear. */
function redirectTarget(from: URL, location: string): URL {
  const target = URL.parse(location, from.href);
  if (target?.protocol === 'https:' || target?.protocol === from.protocol) return target;
  throw new SkepError('fetch/invalid-url', {
    message: `"${shownUrl(from)}" redirects to "${redactUrl(location)}", which is refused`,
  });
}

function asFetchError(cause: unknown, url: URL): SkepError {
  return cause instanceof SkepError ? cause : unreachable(url, errnoOf(cause), cause);
}

function unreachable(url: URL, errno: string | undefined, cause?: unknown): SkepError {
  const message = `cannot reach "${shownUrl(url)}": ${errno ?? 'unexpected failure'}`;
  return new SkepError('fetch/unreachable', { message, detail: { errno }, cause });
}
