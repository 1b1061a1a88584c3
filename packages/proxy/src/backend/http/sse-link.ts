import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Credentials } from '../../call/call.ts';
import type { Link, LinkEvents } from '../link.ts';
import { failureWith, type PortState } from '../port.ts';
import { exchange, type Exchange, type Reply } from './exchange.ts';
import { shownIn } from './shown-in.ts';
import type { Upstream } from './upstream.ts';

/** Characters of messages whose server has not taken them yet. */
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
/** Until the server has said where to send messages. */
const ENDPOINT_WITHIN_MS = 10_000;

export interface SseLinkOptions extends LinkEvents {
  /** Where the server's stream is. */
  readonly url: URL;
  readonly upstream: Upstream;
  /** What the server is shown now. */
  readonly credentials: () => Credentials | undefined;
  readonly clock: Clock;
}

/**
 * One client's session with a server of HTTP with SSE (MCP 2024-11-05). The stream is the session: its first event says where
 * to POST, everything that the server says comes on it, and with its end all is over.
 */
export class SseLink implements Link {
  readonly #options: SseLinkOptions;
  readonly #ending = new AbortController();
  readonly #endpoint = Promise.withResolvers<URL>();
  #to: URL | undefined;
  #state: PortState = 'attaching';
  /** Ends when the last message has been taken, so that none is overtaken. */
  #before: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(options: SseLinkOptions) {
    this.#options = options;
    // Whoever attaches hears of it.
    this.#endpoint.promise.catch(() => {});
  }

  get state(): PortState {
    return this.#state;
  }

  /**
   * Rejects with `proxy/bad-gateway` when the server gives no such stream, or names an endpoint that is not its own, with
   * `proxy/server-refused` when it refuses to.
   */
  async attach(): Promise<void> {
    const late = this.#options.clock.after(ENDPOINT_WITHIN_MS, () => this.#over());
    try {
      const { url, upstream: via } = this.#options;
      const reply = await exchange(url, {
        via,
        method: 'GET',
        headers: { Accept: 'text/event-stream', ...shownIn(this.#options.credentials()) },
        signal: this.#ending.signal,
      });
      if (reply.status !== 200) throw await failureOf(reply);
      void this.#hear(reply);
      this.#to = await this.#endpoint.promise;
      this.#state = 'attached';
    } catch (cause) {
      this.close();
      throw hasCode(cause, 'proxy/server-refused') ? cause : new SkepError('proxy/bad-gateway', { cause });
    } finally {
      late.cancel();
    }
  }

  write(line: string, id?: string): boolean {
    const to = this.#to;
    const isFull = this.#waiting + line.length > MAX_WAITING_CHARACTERS;
    if (to === undefined || this.#state !== 'attached' || isFull) return false;
    this.#waiting += line.length;
    const headers = { 'Content-Type': 'application/json', ...shownIn(this.#options.credentials()) };
    this.#before = this.#before.then(() => this.#post(to, { body: line, headers }, id));
    return true;
  }

  /** A new process knows nothing of this session. */
  restarted(): void {
    this.close();
  }

  ended(): void {
    this.close();
  }

  close(): void {
    this.#state = 'lost';
    this.#ending.abort();
    this.#endpoint.reject(new SkepError('proxy/bad-gateway'));
  }

  /** Never rejects. */
  async #post(
    to: URL,
    sent: Pick<Exchange, 'headers'> & { readonly body: string },
    id: string | undefined,
  ): Promise<void> {
    try {
      const { upstream: via } = this.#options;
      const reply = await exchange(to, { method: 'POST', ...sent, signal: this.#ending.signal, via });
      const isRefused = reply.status >= 300 && reply.status !== 404;
      // What comes next does not wait until a refusal is read, and nobody waits for that of a notification.
      if (isRefused && id !== undefined) void failureOf(reply).then((error) => this.#failed(id, error));
      else reply.drop();
      if (isRefused && id === undefined) this.#failed(id, new SkepError('proxy/bad-gateway'));
      if (reply.status === 404) this.#over();
    } catch (error) {
      this.#failed(id, error);
    } finally {
      this.#waiting -= sent.body.length;
    }
  }

  #failed(id: string | undefined, error: unknown): void {
    if (this.#ending.signal.aborted) return;
    this.#options.log.warn({ err: error }, 'the server did not take a message');
    if (id === undefined) return;
    if (hasCode(error, 'proxy/server-refused')) this.#options.onFailed(id, error.code, error.message);
    else this.#options.onFailed(id, 'proxy/bad-gateway');
  }

  async #hear(reply: Reply): Promise<void> {
    try {
      for await (const { name = 'message', data } of reply.messages()) {
        if (name === 'endpoint') this.#learnEndpoint(data);
        else if (name === 'message' && data !== '') this.#options.onLine(data);
      }
    } catch (error) {
      if (!this.#ending.signal.aborted)
        this.#options.log.debug({ err: error }, 'a stream of the server broke');
    }
    this.#over();
  }

  /** Nowhere but to the server itself: what it names would be called from this machine. */
  #learnEndpoint(data: string): void {
    const { url } = this.#options;
    const endpoint = URL.parse(data, url.href);
    if (endpoint?.origin === url.origin) this.#endpoint.resolve(endpoint);
    else this.#over();
  }

  #over(): void {
    if (this.#state === 'lost') return;
    this.close();
    this.#options.onBroken();
  }
}

/** Why the server did not do it. Never rejects. */
async function failureOf(reply: Reply): Promise<SkepError> {
  await reply.readRefusal();
  const [code, said] = reply.failure();
  return failureWith(code === 'proxy/server-refused' ? code : 'proxy/bad-gateway', said);
}
