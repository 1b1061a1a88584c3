import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { findPath, rawAt } from '@skep/core/json/scan.ts';
import type { Credentials } from '../../call/call.ts';
import { isEnveloped } from '../../message/envelope.ts';
import { memberAt, notification, readMessage } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { isVersion } from '../../message/protocol-version.ts';
import type { Link, LinkEvents } from '../link.ts';
import type { Peer, PortState, ServerSession } from '../port.ts';
import { exchange, type Reply } from './exchange.ts';
import { ModernPosts } from './modern-posts.ts';
import { shownIn } from './shown-in.ts';
import type { Upstream } from './upstream.ts';

/** Characters of messages whose server has not taken them yet. */
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
/** Before a stream that ended is asked for again, doubled while that fails. */
const RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
/** Streams in the place of one that ended before its answer. */
const MAX_RESUMES = 10;
const END_WITHIN_MS = 2_000;
/** The server knows no such session (MCP 2025-11-25, session management). */
const FORGOTTEN = 404;
/** Servers say so of a second stream of a session. */
const HELD = 409;
/** What clients are told as it is; all else is a bad gateway. */
const TOLD = ['proxy/session-unknown', 'proxy/session-store-away'] as const;
const BOTH_FORMS = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };

export interface HttpLinkOptions extends LinkEvents {
  /** The server's endpoint. */
  readonly url: URL;
  readonly upstream: Upstream;
  /** What the server is shown now. */
  readonly credentials: () => Credentials | undefined;
  readonly clock: Clock;
  /** A session that another link began, which this one goes on with. */
  readonly adopted?: ServerSession | undefined;
  /** As of a peer; absent where no other link has the session. */
  readonly renewed?: Peer['renewed'];
}

interface Sent {
  readonly body?: string;
  /** The last event that was heard. */
  readonly last?: string | undefined;
  readonly credentials?: Credentials | undefined;
  readonly signal?: AbortSignal;
  /** The link's own where it is not given. */
  readonly session?: string | undefined;
}

/**
 * One client's session with a server of MCP's Streamable HTTP. Each message is a POST, answers come on its reply, and what
 * the server says of itself on a GET; a session that the server has forgotten is begun anew, once per message.
 */
export class HttpLink implements Link {
  readonly #options: HttpLinkOptions;
  readonly #ending = new AbortController();
  #state: PortState = 'attached';
  #session: string | undefined;
  /** The agreed revision; undefined until the handshake is made. */
  #version: string | undefined;
  /** The `initialize` that was sent, which begins the session anew. */
  #opening = '';
  #recovering: Promise<void> | undefined;
  /** Present while a client hears what the server says unasked. */
  #hearing: AbortController | undefined;
  /** The server was asked for that and offers it not now. */
  #isRefused = false;
  /** Ends when the last notification or answer has been taken, so that none is overtaken. */
  #before: Promise<void> = Promise.resolve();
  readonly #modern: ModernPosts;
  #waiting = 0;

  constructor(options: HttpLinkOptions) {
    this.#options = options;
    const { adopted } = options;
    this.#session = adopted?.name;
    this.#version = adopted?.version;
    this.#opening = adopted?.body ?? '';
    this.#modern = new ModernPosts({
      ...options,
      ending: this.#ending.signal,
      waiting: (characters) => {
        this.#waiting += characters;
      },
      failed: (id, error) => this.#failed(id, error),
    });
  }

  get state(): PortState {
    return this.#state;
  }

  attach(): Promise<void> {
    return Promise.resolve();
  }

  write(line: string, id?: string, peer?: Peer): boolean {
    if (this.#state !== 'attached' || this.#waiting + line.length > MAX_WAITING_CHARACTERS) return false;
    if (this.#version === undefined && this.#isModern(line, peer)) return true;
    if (this.#version === undefined && id !== undefined) this.#opening = line;
    this.#waiting += line.length;
    const credentials = this.#options.credentials();
    const taken = this.#before
      .then(() => this.#post(line, credentials))
      .finally(() => {
        this.#waiting -= line.length;
      });
    const read = taken.then((reply) => this.#read(reply, id));
    read.catch((error: unknown) => this.#failed(id, error));
    if (id === undefined)
      this.#before = taken.then(
        () => {},
        () => {},
      );
    return true;
  }

  listen(): void {
    if (this.#hearing !== undefined) return;
    this.#hearing = new AbortController();
    this.#startHearing();
  }

  deaf(): void {
    this.#hearing?.abort();
    this.#hearing = undefined;
  }

  session(): ServerSession | undefined {
    const [name, version, body] = [this.#session, this.#version, this.#opening];
    return version === undefined ? undefined : { name, version, body };
  }

  /** A new process knows nothing of this session. */
  restarted(): void {
    this.close();
  }

  ended(): void {
    this.close();
  }

  close(goesOn?: 'elsewhere'): void {
    if (this.#state === 'lost') return;
    this.#state = 'lost';
    this.#ending.abort();
    if (this.#session !== undefined && goesOn === undefined) void this.#endSession(this.#session);
  }

  /** Sends what is of the modern revision, which has no session: there the end of a stream is what cancels its request. */
  #isModern(line: string, peer: Peer | undefined): boolean {
    const message = readMessage(line);
    if (typeof message === 'string') return false;
    if (message.kind === 'notification' && message.method === METHODS.cancelled) {
      const span = findPath(line, ['params', 'requestId']);
      this.#modern.cancel(span === undefined ? '' : rawAt(line, span));
      return true;
    }
    if (message.kind !== 'request' || !isEnveloped(message)) return false;
    void this.#modern.post(message, peer);
    return true;
  }

  /** Resolves when the server has begun to answer. */
  async #post(body: string, credentials: Credentials | undefined): Promise<Reply> {
    if (this.#recovering !== undefined) await this.#recovering;
    const session = this.#session;
    const reply = await this.#send('POST', { body, credentials });
    if (reply.status !== 404 || session === undefined) return reply;
    reply.drop();
    await this.#recover(session);
    return this.#send('POST', { body, credentials });
  }

  #send(method: 'POST' | 'GET', sent: Sent): Promise<Reply> {
    const { url, upstream: via } = this.#options;
    const { body, last, credentials = this.#options.credentials(), signal = this.#ending.signal } = sent;
    const session = 'session' in sent ? sent.session : this.#session;
    return exchange(url, {
      via,
      method,
      headers: {
        ...(method === 'GET' ? { Accept: 'text/event-stream' } : BOTH_FORMS),
        ...(session === undefined ? {} : { 'Mcp-Session-Id': session }),
        ...(this.#version === undefined ? {} : { 'MCP-Protocol-Version': this.#version }),
        ...(last === undefined ? {} : { 'Last-Event-ID': last }),
        ...shownIn(credentials),
      },
      ...(body === undefined ? {} : { body }),
      signal,
    });
  }

  /** Hears everything of a reply to a POST; `id` is that of the request in it. */
  async #read(reply: Reply, id: string | undefined): Promise<void> {
    if (this.#version === undefined) this.#session ??= reply.header('mcp-session-id');
    let last = await this.#hear(reply, id);
    for (let tries = 0; tries < MAX_RESUMES && last !== undefined && this.#isWaiting(id); tries += 1) {
      await this.#options.clock.sleep(RETRY_MS, this.#ending.signal);
      const more = await this.#send('GET', { last });
      if (more.status !== 200) {
        more.drop();
        break;
      }
      last = (await this.#hear(more, id)) ?? last;
    }
    if (id !== undefined) this.#options.onFailed(id, ...reply.failure());
  }

  #isWaiting(id: string | undefined): boolean {
    return id !== undefined && this.#options.isWaiting(id);
  }

  /** Hands on the messages of a reply to the request `about`; gives back the last id that it told. */
  async #hear(reply: Reply, about?: string): Promise<string | undefined> {
    let last: string | undefined;
    for await (const { id, name = 'message', data } of reply.messages()) {
      last = id ?? last;
      if (name !== 'message' || data === '') continue;
      if (this.#version === undefined) this.#learnVersion(data);
      this.#options.onLine(data, about);
    }
    return last;
  }

  #learnVersion(text: string): void {
    const message = readMessage(text);
    const version =
      typeof message === 'string' ? undefined : memberAt(message.value, ['result', 'protocolVersion']);
    if (isVersion(version)) this.#version = version;
  }

  /** What the server says of itself, as long as there is a session and a client hears it; many servers say nothing. */
  #startHearing(): void {
    if (this.#hearing === undefined) return;
    const signal = AbortSignal.any([this.#ending.signal, this.#hearing.signal]);
    this.#isRefused = false;
    this.#before
      .then(() => this.#hearAll(signal))
      .catch((error: unknown) => {
        if (!signal.aborted) this.#failed(undefined, error);
      });
  }

  async #hearAll(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let last: string | undefined;
    for (let delay = RETRY_MS; !signal.aborted; delay = Math.min(delay * 2, LONGEST_RETRY_MS)) {
      try {
        const session = this.#session;
        const reply = await this.#send('GET', { last, signal });
        if (reply.status === 200) {
          delay = RETRY_MS / 2;
          last = (await this.#hear(reply)) ?? last;
        } else {
          reply.drop();
          const isAgain = await this.#mayHearLater(reply.status, session);
          if (!isAgain) return;
        }
      } catch (error) {
        if (signal.aborted || hasCode(error, 'bridge/unreadable')) throw error;
        if (hasCode(error, 'proxy/session-unknown')) return;
      }
      await clock.sleep(delay, signal);
    }
  }

  /** False where the server offers nothing to hear, or nothing before its session was begun anew. */
  async #mayHearLater(status: number, session: string | undefined): Promise<boolean> {
    const isShared = this.#options.renewed !== undefined;
    // It has not missed the stream of another replica yet: most take one.
    if (status === HELD) return isShared;
    if (status !== FORGOTTEN || session === undefined) return false;
    await this.#recovering?.catch(() => {});
    // A stream is no reason to begin a session anew; another replica may have.
    if (isShared && this.#session === session) await this.#renew(session);
    this.#isRefused = this.#session === session;
    return !this.#isRefused;
  }

  #recover(forgotten: string): Promise<void> {
    if (this.#session !== forgotten) return Promise.resolve();
    this.#recovering ??= this.#renew(forgotten, () => this.#beginAnew()).finally(() => {
      this.#recovering = undefined;
    });
    return this.#recovering;
  }

  /** Fails with `proxy/session-unknown` where the session is over, and with what keeps others from telling. */
  async #renew(forgotten: string, begin?: () => Promise<string | undefined>): Promise<void> {
    const { renewed, log } = this.#options;
    let begun: string | undefined;
    const beginning = begin && (async () => (begun = await begin()));
    try {
      const next = await (renewed === undefined ? beginning?.() : renewed(beginning));
      if (next === undefined && renewed !== undefined) throw new SkepError('proxy/session-unknown');
      // Another message may have led to a new one meanwhile.
      if (this.#session === forgotten) this.#session = next;
    } catch (cause) {
      if (hasCode(cause, 'proxy/session-store-away')) throw cause;
      if (!this.#ending.signal.aborted) this.#options.onBroken();
      throw new SkepError('proxy/session-unknown', { cause });
    } finally {
      // Another replica was faster.
      if (begun !== undefined && begun !== this.#session) void this.#endSession(begun);
    }
    if (this.#session === forgotten) return;
    log.info({}, 'the server had forgotten a session, which was begun anew');
    if (this.#isRefused) this.#startHearing();
  }

  /** What the server calls the session that it begins. */
  async #beginAnew(): Promise<string | undefined> {
    const opening = await this.#send('POST', { body: this.#opening, session: undefined });
    const session = opening.header('mcp-session-id');
    for await (const event of opening.messages()) void event;
    if (opening.status !== 200) throw new SkepError('proxy/bad-gateway');
    const told = await this.#send('POST', { body: notification(METHODS.initialized, {}).text, session });
    told.drop();
    return session;
  }

  async #endSession(session: string): Promise<void> {
    try {
      const headers = { 'Mcp-Session-Id': session, ...shownIn(this.#options.credentials()) };
      const signal = AbortSignal.timeout(END_WITHIN_MS);
      const { url, upstream: via } = this.#options;
      const reply = await exchange(url, { method: 'DELETE', headers, signal, via });
      reply.drop();
    } catch (error) {
      this.#options.log.debug({ err: error }, 'the server could not be told that a session is over');
    }
  }

  #failed(id: string | undefined, error: unknown): void {
    if (this.#ending.signal.aborted) return;
    this.#options.log.warn({ err: error }, 'the server could not be told something, or did not answer');
    const told = TOLD.find((code) => hasCode(error, code)) ?? 'proxy/bad-gateway';
    if (id !== undefined) this.#options.onFailed(id, told);
  }
}
