import {
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import type { Socket } from 'node:net';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkHost, guardedLookup } from '@skep/core/fetch/address-guard.ts';
import { trustedWith } from '@skep/core/fetch/ca-bundle.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { HttpBackend } from '../backend.ts';
import { endWith } from './end-with.ts';
import { KeptConnections } from './kept-connections.ts';

/** A connection that idles longer may be ended by its server just as the next request is sent. */
const IDLE_MS = 4_000;
/** Connections that are kept without a request on them. */
const MAX_IDLE = 32;
const MAX_REDIRECTS = 10;
/** A server that was there and refuses connections is being started anew: it is dialled again after this, doubled each time. */
const DIAL_AGAIN_MS = 100;
const MAX_DIALS = 8;
/** Redirects that keep method and body for whoever follows them on behalf of a client. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);
/** A larger body is not held until its answer has come, and so never sent again. */
export const MAX_REPEATED_BYTES = 64 * 1024;
const MAX_LEFT_BYTES = 64 * 1024;
const NONE = {};

export interface Outgoing {
  readonly method: string;
  /** Path and query as they were asked for, where they are not to be as the URL has them. */
  readonly path?: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: Buffer | string | undefined;
  readonly signal?: AbortSignal;
  /** Also those of a server here, which are its client's otherwise; those of one elsewhere are followed always. */
  readonly redirects?: 'follow';
  /** Its answer says nothing of who may ask. */
  readonly quiet?: boolean;
}

/** A request on its way. */
export interface Sent {
  /** Resolves when the server has taken the body, or will not. */
  readonly taken: Promise<void>;
  /** Rejects with the system's own error, `fetch/refused-address`, or `proxy/bad-gateway` where no answer came. */
  readonly reply: Promise<IncomingMessage>;
  abort(): void;
}

/**
 * The way to one server that speaks HTTP: connections that are kept for a while, and for a server elsewhere TLS, the guard of
 * addresses, the headers that its person gave, and its redirects within the same host (docs/behaviour/proxy.md#remote-servers).
 */
export class Upstream {
  readonly #remote: HttpBackend['remote'];
  /** What its person gave, by names in lower case. */
  readonly #own: Record<string, string> = Object.create(null);
  readonly #closing = new AbortController();
  readonly #agents: { readonly http: KeptConnections; readonly https: HttpsAgent };

  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #heard: (status: number) => void;
  #isKnown = false;
  /** The token that the server was shown last. */
  #token = '';

  /** `heard` is told the status of each answer. */
  constructor(
    { remote }: Pick<HttpBackend, 'remote'>,
    clock: Pick<Clock, 'sleep'>,
    heard: (status: number) => void = () => {},
  ) {
    this.#clock = clock;
    this.#heard = heard;
    this.#remote = remote;
    for (const [name, value] of Object.entries(remote?.headers ?? {})) this.#own[name.toLowerCase()] = value;
    const pool = { keepAlive: true, scheduling: 'lifo', timeout: IDLE_MS, maxFreeSockets: MAX_IDLE } as const;
    const guard = remote && !remote.allowPrivate ? { lookup: guardedLookup() } : {};
    const trusted = remote?.ca === undefined ? {} : { ca: trustedWith(remote.ca) };
    this.#agents = {
      http: new KeptConnections({ ...pool, ...guard }),
      https: new HttpsAgent({ ...pool, ...guard, ...trusted, minVersion: 'TLSv1.2' }),
    };
    // One whose request was left before it was connected is free only then.
    const endLate = (socket: Socket): void => void (this.#closing.signal.aborted && socket.destroy());
    for (const agent of Object.values(this.#agents)) agent.on('free', endLate);
  }

  /** A request to the server; to another path of it where it redirects there. */
  send(first: URL, { body: given, method, path, headers, signal, redirects, quiet = false }: Outgoing): Sent {
    let body = given;
    let current: ClientRequest | undefined;
    let isOver = false;
    const abort = (): void => {
      isOver = true;
      current?.destroy();
    };
    const taken = Promise.withResolvers<void>();
    const isFollowed = this.#remote !== undefined || redirects === 'follow';
    const isHeld = isFollowed && Buffer.byteLength(given ?? '') <= MAX_REPEATED_BYTES;
    const attempt: Attempt = (url, authorization) => {
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      if (isOver || signal?.aborted === true) throw new SkepError('proxy/client-gone');
      // An address in the URL is never looked up, so the guard does not see it.
      if (this.#remote?.allowPrivate === false) checkHost(url);
      const way = wayTo(url);
      const list = this.#listed(way, { headers, body, authorization });
      current = this.#request(way, { method, path: url === first ? path : undefined, headers: list });
      let isAnswered = false;
      // Each of these is told once, which `once` would look after at a cost that shows.
      current.on('error', reject).on('response', (reply) => {
        isAnswered = true;
        // What fails later is told by whoever reads the body.
        reply.on('error', () => {});
        resolve(reply);
      });
      // Nobody asked for another protocol, so there is no answer in it.
      current.on('upgrade', (_reply, socket) => void socket.destroy());
      current.on('close', () => {
        signal?.removeEventListener('abort', abort);
        // An error takes longer to make than all else that is done for a short answer.
        if (isAnswered) taken.resolve();
        else reject(unanswered());
      });
      signal?.addEventListener('abort', abort);
      endWith(current, body, (error?: unknown) => {
        // What did not get through may be sent again.
        if (error !== undefined && error !== null) return;
        taken.resolve();
        if (!isHeld) body = undefined;
      });
      return promise;
    };
    // The connection had ended before the server saw this; what changes something is not sent twice.
    const isStale = (error: unknown): boolean =>
      method !== 'POST' && current?.reusedSocket === true && hasReset(error);
    const reached = (url: URL, authorization: Shown): Promise<IncomingMessage> =>
      this.#reached(() => attempt(url, authorization), isStale, { quiet, signal });
    const answered = isFollowed
      ? this.#signedIn({ method, canRepeat: isHeld }, (show) =>
          this.#followed(first, isHeld, async (url) => reached(url, show && (await show(url)))),
        )
      : reached(first, undefined);
    const reply = answered.then(
      (answer) => {
        if (!quiet) this.#heard(answer.statusCode ?? 0);
        return answer;
      },
      (error: unknown) => {
        taken.resolve();
        throw error;
      },
    );
    return { taken: taken.promise, reply, abort };
  }

  /**
   * Asks with the token that the server is shown, where there is one; once more with a newer one where the server refuses it:
   * what it refused so it has not looked at (RFC 9110 §15.5.2).
   */
  async #signedIn(
    { method, canRepeat }: { readonly method: string; readonly canRepeat: boolean },
    ask: (show: Show | undefined) => Promise<IncomingMessage>,
  ): Promise<IncomingMessage> {
    const source = this.#remote?.token;
    if (source === undefined) return ask(undefined);
    let token = '';
    const show: Show = async (url) => {
      const headers = await source.headersFor({ method, url });
      token = headers['authorization']?.split(' ')[1] ?? '';
      this.#token = token;
      return headers;
    };
    const reply = await ask(show);
    const { 'www-authenticate': challenge, 'dpop-nonce': nonce } = reply.headers;
    const isLacking = reply.statusCode === 403 && challenge !== undefined;
    if (reply.statusCode !== 401 && !isLacking) return reply;
    const next = isLacking
      ? await source.lacking(token, challenge)
      : await source.refused(token, challenge, typeof nonce === 'string' ? nonce : undefined);
    if (next === undefined || !canRepeat) return reply;
    leave(reply);
    return ask(show);
  }

  /** Follows redirects within the server. */
  async #followed(
    first: URL,
    canRepeat: boolean,
    ask: (url: URL) => Promise<IncomingMessage>,
  ): Promise<IncomingMessage> {
    let url = first;
    for (let hops = 0; ; hops += 1) {
      const reply = await ask(url);
      const next = canRepeat ? redirectOf(reply, url) : undefined;
      // A token is for one origin alone.
      if (next === undefined || (this.#remote?.token && next.origin !== first.origin)) return reply;
      if (hops === MAX_REDIRECTS) {
        reply.destroy();
        throw new SkepError('proxy/bad-gateway', { message: 'the server redirects too often' });
      }
      leave(reply);
      url = next;
    }
  }

  /** The answer to `attempt`, made again where it cannot have reached the server. */
  async #reached(
    attempt: () => Promise<IncomingMessage>,
    isStale: (error: unknown) => boolean,
    { quiet, signal }: { readonly quiet: boolean; readonly signal: AbortSignal | undefined },
  ): Promise<IncomingMessage> {
    for (let dials = 1; ; dials += 1) {
      try {
        const reply = await attempt();
        this.#isKnown = true;
        return reply;
      } catch (error) {
        const isAway = this.#isKnown && !quiet && errnoOf(error) === 'ECONNREFUSED';
        if (dials === MAX_DIALS || !(isAway || isStale(error))) throw error;
        if (!isAway) continue;
        const ends = [this.#closing.signal, ...(signal === undefined ? [] : [signal])];
        await this.#clock.sleep(DIAL_AGAIN_MS * 2 ** (dials - 1), AbortSignal.any(ends));
      }
    }
  }

  /** Values that the server is shown beside what a client sends: no client may hear them from it. */
  get shown(): readonly string[] {
    return [...Object.values(this.#own), this.#token];
  }

  /** Ends the connections that are kept; what is under way ends by itself. Idempotent. */
  close(): void {
    this.#closing.abort(new SkepError('proxy/shutting-down'));
    void this.#remote?.token?.close();
    this.#agents.http.endIdle();
    for (const socket of Object.values(this.#agents.https.freeSockets).flat()) socket?.destroy();
  }

  #request(
    { isSecure, hostname, port, path: ownPath }: Way,
    {
      method,
      path,
      headers,
    }: {
      readonly method: string;
      readonly path: string | undefined;
      readonly headers: readonly string[];
    },
  ): ClientRequest {
    const options = { hostname, port, path: path ?? ownPath, method, headers };
    return isSecure
      ? httpsRequest({ ...options, agent: this.#agents.https })
      : httpRequest({ ...options, agent: this.#agents.http });
  }

  /**
   * Names and values in turns: Node writes a list as it is; an object is looked through and copied first. What the person gave
   * stands for what a client sends of that name, and a token for both.
   */
  #listed(
    { host }: Way,
    {
      headers,
      body,
      authorization = NONE,
    }: Pick<Outgoing, 'headers' | 'body'> & { readonly authorization: Shown },
  ): readonly string[] {
    const list: unknown[] = ['host', host];
    const own = this.#own;
    // Most servers are shown nothing but what a client sends.
    const hasOther = this.#remote !== undefined || authorization !== NONE;
    let hasLength = body === undefined;
    for (const given of Object.keys(headers)) {
      const name = given.toLowerCase();
      const value = headers[given];
      if (value === undefined || name === 'host') continue;
      if (hasOther && (name in own || Object.hasOwn(authorization, name))) continue;
      hasLength ||= name === 'content-length';
      list.push(name, value);
    }
    if (hasOther) {
      for (const name of Object.keys(own))
        if (!Object.hasOwn(authorization, name)) list.push(name, own[name]);
      for (const name of Object.keys(authorization)) list.push(name, authorization[name]);
    }
    if (!hasLength) list.push('content-length', Buffer.byteLength(body ?? ''));
    return list as readonly string[];
  }
}

/** What Node wants to know of an address; nobody changes one that is used here. */
interface Way {
  readonly isSecure: boolean;
  readonly host: string;
  readonly hostname: string;
  readonly port: string;
  readonly path: string;
}

const ways = new WeakMap<URL, Way>();

function wayTo(url: URL): Way {
  const known = ways.get(url);
  if (known !== undefined) return known;
  const { protocol, host, hostname, port, pathname, search } = url;
  const way = {
    isSecure: protocol === 'https:',
    host,
    hostname: hostname.replace(/^\[|\]$/gu, ''),
    port,
    path: pathname + search,
  };
  ways.set(url, way);
  return way;
}

function unanswered(): SkepError {
  return new SkepError('proxy/bad-gateway', { message: 'the server closed the connection unanswered' });
}

type Shown = Readonly<Record<string, string>> | undefined;
/** Makes the headers that show a token with a request to `url`, which may be a proof for that request alone. */
type Show = (url: URL) => Promise<Shown>;
type Attempt = (url: URL, authorization: Shown) => Promise<IncomingMessage>;

/** Reads a body that nobody wants to its end where it is small, for the sake of its connection. */
export function leave(reply: IncomingMessage): void {
  let left = MAX_LEFT_BYTES;
  if (isStream(reply)) reply.destroy();
  else
    reply.on('data', (piece: Buffer | string) => {
      left -= piece.length;
      if (left < 0) reply.destroy();
    });
}

export function isStream({ headers }: IncomingMessage): boolean {
  return /^text\/event-stream\b/iu.test(headers['content-type'] ?? '');
}

/** Where a redirect leads that stays with the same host; never from https to http. */
function redirectOf({ statusCode = 0, headers: { location } }: IncomingMessage, from: URL): URL | undefined {
  const to = REDIRECTS.has(statusCode) && location !== undefined ? URL.parse(location, from.href) : null;
  if (to === null) return undefined;
  const isUpgrade =
    from.protocol === 'http:' && to.protocol === 'https:' && to.hostname === from.hostname && to.port === '';
  return to.origin === from.origin || isUpgrade ? to : undefined;
}

function hasReset(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === 'ECONNRESET' || errno === 'EPIPE';
}
