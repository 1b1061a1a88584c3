import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { findPath, rawAt } from '@skep/core/json/scan.ts';
import type { Credentials } from '../../call/call.ts';
import { isEnveloped } from '../../message/envelope.ts';
import { memberAt, notification, readMessage } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import type { Link, LinkEvents } from '../link.ts';
import type { Peer, PortState } from '../port.ts';
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
const BOTH_FORMS = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };

export interface HttpLinkOptions extends LinkEvents {
  /** The server's endpoint. */
  readonly url: URL;
  readonly upstream: Upstream;
  /** What the server is shown now. */
  readonly credentials: () => Credentials | undefined;
  readonly clock: Clock;
}

interface Sent {
  readonly body?: string;
  /** The last event that was heard. */
  readonly last?: string | undefined;
  readonly credentials?: Credentials | undefined;
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
  /** Ends when the last notification or answer has been taken, so that none is overtaken. */
  #before: Promise<void> = Promise.resolve();
  readonly #modern: ModernPosts;
  #waiting = 0;
  #listens = false;

  constructor(options: HttpLinkOptions) {
    this.#options = options;
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
    if (this.#listens) return;
    this.#listens = true;
    void this.#before.then(() => this.#hearAll()).catch((error: unknown) => this.#failed(undefined, error));
  }

  /** A new process knows nothing of this session. */
  restarted(): void {
    this.close();
  }

  ended(): void {
    this.close();
  }

  close(): void {
    if (this.#state === 'lost') return;
    this.#state = 'lost';
    this.#ending.abort();
    if (this.#session !== undefined) void this.#endSession(this.#session);
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
    const session = this.#session;
    const reply = await this.#send('POST', { body, credentials });
    if (reply.status !== 404 || session === undefined) return reply;
    reply.drop();
    await this.#recover(session);
    return this.#send('POST', { body, credentials });
  }

  #send(
    method: 'POST' | 'GET',
    { body, last, credentials = this.#options.credentials() }: Sent,
  ): Promise<Reply> {
    const { url, upstream: via } = this.#options;
    return exchange(url, {
      via,
      method,
      headers: {
        ...(method === 'GET' ? { Accept: 'text/event-stream' } : BOTH_FORMS),
        ...(this.#session === undefined ? {} : { 'Mcp-Session-Id': this.#session }),
        ...(this.#version === undefined ? {} : { 'MCP-Protocol-Version': this.#version }),
        ...(last === undefined ? {} : { 'Last-Event-ID': last }),
        ...shownIn(credentials),
      },
      ...(body === undefined ? {} : { body }),
      signal: this.#ending.signal,
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
    if (typeof version === 'string' && /^[\w.-]{1,64}$/u.test(version)) this.#version = version;
  }

  /** What the server says of itself, as long as there is a session; many servers say nothing. */
  async #hearAll(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#ending;
    let last: string | undefined;
    for (let delay = RETRY_MS; !signal.aborted; delay = Math.min(delay * 2, LONGEST_RETRY_MS)) {
      try {
        const reply = await this.#send('GET', { last });
        if (reply.status !== 200) {
          reply.drop();
          return;
        }
        delay = RETRY_MS / 2;
        last = (await this.#hear(reply)) ?? last;
      } catch (error) {
        if (signal.aborted || hasCode(error, 'bridge/unreadable')) throw error;
      }
      await clock.sleep(delay, signal);
    }
  }

  #recover(forgotten: string): Promise<void> {
    if (this.#session !== forgotten) return this.#recovering ?? Promise.resolve();
    this.#session = undefined;
    this.#recovering = this.#beginAnew().catch((cause: unknown) => {
      this.#options.onBroken();
      throw new SkepError('proxy/session-unknown', { cause });
    });
    return this.#recovering;
  }

  async #beginAnew(): Promise<void> {
    const reply = await this.#send('POST', { body: this.#opening });
    const session = reply.header('mcp-session-id');
    for await (const event of reply.messages()) void event;
    if (reply.status !== 200) throw new SkepError('proxy/bad-gateway');
    this.#session = session;
    const told = await this.#send('POST', { body: notification(METHODS.initialized, {}).text });
    told.drop();
    this.#options.log.info({}, 'the server had forgotten a session, which was begun anew');
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
    const code = hasCode(error, 'proxy/session-unknown') ? 'proxy/session-unknown' : 'proxy/bad-gateway';
    if (id !== undefined) this.#options.onFailed(id, code);
  }
}
