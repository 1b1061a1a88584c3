import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import {
  errorText,
  memberAt,
  readMessage,
  type Message,
  type Request,
} from '@skep/proxy/message/json-rpc.ts';
import { METHODS } from '@skep/proxy/message/methods.ts';
import { exchange, type Reply } from '@skep/proxy/backend/http/exchange.ts';
import { headersOf, isStateless } from './headers.ts';
import { endSession, renew, sessionOf, type Session } from './session.ts';

export interface BridgeOptions {
  /** Where the server is now, and that it runs; fails when it does not, and is not to. */
  readonly locate: () => Promise<URL>;
  /** Writes one message to the client; resolves when that takes more. */
  readonly write: (line: string) => Promise<void>;
  /** Says something to the person behind the client. */
  readonly warn: (text: string) => void;
  readonly clock: Clock;
}

/** Requests without an answer at once; a client that asks more is refused. */
const MAX_UNANSWERED = 1_000;
/** Characters that wait to be sent; no more is read from the client then. */
const MAX_WAITING = 16 * 1024 * 1024;
/** How long to look for a server that went away, and between two looks. */
const AWAY_MS = 30_000;
const PAUSE_MS = 250;
/** How long requests may still be answered when the client has closed its side. */
const LAST_ANSWERS_MS = 5_000;
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH']);
const UNAVAILABLE = 503;
const UNKNOWN_SESSION = 404;

/**
 * Speaks for one client of the stdio transport to a server behind a proxy: POST for each message, one GET for what the
 * server says by itself. A session that the server lost is begun anew.
 */
export class Bridge {
  readonly #options: BridgeOptions;
  readonly #ending = new AbortController();
  readonly #unanswered = new Map<string, AbortController>();
  #url: URL;
  #finding: Promise<URL> | undefined;
  #session: Session | undefined;
  #renewing: Promise<void> | undefined;
  /** What has to have arrived before the next message leaves: notifications must not be overtaken. */
  #turn: Promise<void> = Promise.resolve();
  readonly #answering = new Set<Promise<void>>();
  #waiting = 0;
  #listening: AbortController | undefined;
  readonly #fail: (error: unknown) => void;
  /** Rejects when the server is gone for good; else never settles. */
  readonly failed: Promise<never>;

  constructor(url: URL, options: BridgeOptions) {
    this.#options = options;
    this.#url = url;
    const { promise, reject } = Promise.withResolvers<never>();
    this.failed = promise;
    this.failed.catch(() => {});
    this.#fail = reject;
  }

  /** Takes one line of the client; resolves when the next may come. */
  async take(line: string): Promise<void> {
    const message = readMessage(line);
    if (typeof message === 'string')
      return this.#options.warn(`a line of the client is no message (${message})`);
    if (message.kind === 'notification' && this.#cancels(message)) return;
    if (message.kind === 'request' && this.#unanswered.size >= MAX_UNANSWERED) {
      return this.#refuse(message, 'too many requests wait for their answers');
    }
    const cancelling = new AbortController();
    if (message.kind === 'request') this.#unanswered.set(message.id, cancelling);
    this.#waiting += message.text.length;
    const sent = this.#turn
      .then(() => {
        this.#waiting -= message.text.length;
        return this.#send(message, cancelling.signal);
      })
      .catch(this.#fail);
    this.#answering.add(sent);
    void sent.finally(() => this.#answering.delete(sent));
    // Only the handshake is waited for among requests: what comes after it needs its session.
    if (message.kind !== 'request' || message.method === METHODS.initialize) this.#turn = sent;
    if (this.#waiting > MAX_WAITING) await this.#turn;
  }

  /** The client has nothing more to say: waits a while for answers, then ends the session. */
  async finish(): Promise<void> {
    const { clock } = this.#options;
    const over = new AbortController();
    const late = clock.sleep(LAST_ANSWERS_MS, AbortSignal.any([over.signal, this.#ending.signal]));
    await Promise.race([this.#allAnswered(), late.catch(() => {})]);
    over.abort();
    await this.close();
  }

  async #allAnswered(): Promise<void> {
    await this.#turn;
    await Promise.all(this.#answering);
  }

  /** Ends what goes on, and the session. Idempotent. */
  async close(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort();
    if (this.#session) await endSession(this.#session, this.#url);
  }

  /** Without sessions a request is cancelled by leaving its answer (MCP 2026-07-28). */
  #cancels(message: Message): boolean {
    const id = memberAt(message.value, ['params', 'requestId']);
    const isCancel = message.kind === 'notification' && message.method === METHODS.cancelled;
    if (!isCancel || !isStateless(message)) return false;
    this.#unanswered.get(JSON.stringify(id))?.abort();
    return true;
  }

  async #send(message: Message, cancelled: AbortSignal): Promise<void> {
    const { signal } = this.#ending;
    try {
      const reply = await this.#post(message, AbortSignal.any([signal, cancelled]));
      if (message.kind === 'request') await this.#answer(message, reply);
      else if (reply.status >= 400)
        this.#options.warn(`the server refused a message (status ${reply.status})`);
      if (message.kind === 'notification' && message.method === METHODS.initialized) void this.#listen();
      reply.drop();
    } catch (error) {
      if (signal.aborted || cancelled.aborted) return;
      if (message.kind === 'request') await this.#refuse(message, whyNot(error));
      if (isFinal(error)) this.#fail(error);
    } finally {
      if (message.kind === 'request') this.#unanswered.delete(message.id);
    }
  }

  /** The head of the answer, from a server that may have to be found, or told again who speaks. */
  async #post(message: Message, signal: AbortSignal): Promise<Reply> {
    const { clock } = this.#options;
    const deadline = clock.elapsed() + AWAY_MS;
    for (;;) {
      const session = this.#session;
      const begins = message.kind === 'request' && message.method === METHODS.initialize;
      const headers = headersOf(message, begins ? {} : (session?.headers ?? {}));
      try {
        const reply = await exchange(this.#url, {
          method: 'POST',
          headers,
          body: message.text,
          signal,
        });
        const isLate = clock.elapsed() > deadline;
        const isLost = reply.status === UNKNOWN_SESSION && 'Mcp-Session-Id' in headers;
        if (isLate || (!isLost && reply.status !== UNAVAILABLE)) return reply;
        reply.drop();
        // A server that is being restarted begins no session yet.
        const isBack =
          isLost &&
          (await this.#renew(session).then(
            () => true,
            () => false,
          ));
        if (!isBack) await clock.sleep(PAUSE_MS, signal);
      } catch (error) {
        if (signal.aborted || !wasNeverSent(error) || clock.elapsed() > deadline) throw error;
        await this.#find(signal);
      }
    }
  }

  /** Passes on what belongs to a request, its answer last; fetches the rest where the stream breaks before that. */
  async #answer(request: Request, first: Reply): Promise<void> {
    let reply = first;
    let lastId: string | undefined;
    for (let resumed = 0; ; resumed += 1) {
      try {
        for await (const { id, data } of reply.messages()) {
          lastId = id ?? lastId;
          const passed = data === '' ? undefined : await this.#pass(data);
          if (passed?.kind !== 'response' || passed.id !== request.id) continue;
          if (request.method === METHODS.initialize) this.#session = sessionOf(request, first, passed.text);
          return;
        }
      } catch (error) {
        if (this.#ending.signal.aborted || hasCode(error, 'bridge/unreadable')) throw error;
      }
      if (reply.status >= 400) throw refusal(reply.status);
      if (lastId === undefined || resumed === 3 || this.#session === undefined) throw lost();
      reply = await this.#get(lastId, this.#ending.signal);
      if (reply.status !== 200) throw lost();
    }
  }

  async #get(lastId: string | undefined, signal: AbortSignal): Promise<Reply> {
    const headers = {
      Accept: 'text/event-stream',
      ...this.#session?.headers,
      ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
    };
    return exchange(this.#url, { method: 'GET', headers, signal });
  }

  /** What the server says by itself, for as long as the session lasts. */
  async #listen(): Promise<void> {
    if (this.#session?.headers['Mcp-Session-Id'] === undefined) return;
    this.#listening?.abort();
    const own = (this.#listening = new AbortController());
    const signal = AbortSignal.any([own.signal, this.#ending.signal]);
    let lastId: string | undefined;
    while (!signal.aborted) {
      try {
        const session = this.#session;
        const reply = await this.#get(lastId, signal);
        if (reply.status === UNKNOWN_SESSION) {
          reply.drop();
          return await this.#renew(session);
        }
        if (reply.status !== 200 && reply.status !== UNAVAILABLE) return reply.drop();
        for await (const { id, data } of reply.messages()) {
          lastId = id ?? lastId;
          if (data !== '' && reply.status === 200) await this.#pass(data);
        }
        await this.#options.clock.sleep(PAUSE_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        try {
          if (wasNeverSent(error)) await this.#find(signal);
          else await this.#options.clock.sleep(PAUSE_MS, signal);
        } catch (gone) {
          if (!signal.aborted) this.#fail(gone);
          return;
        }
      }
    }
  }

  async #pass(data: string): Promise<Message | undefined> {
    const message = readMessage(data);
    if (typeof message === 'string') {
      this.#options.warn(`the server sent what is no message (${message})`);
      return undefined;
    }
    await this.#options.write(message.text);
    return message;
  }

  /** Waits for a server that is on its way, at its address of today. */
  async #find(signal: AbortSignal): Promise<void> {
    await this.#options.clock.sleep(PAUSE_MS, signal);
    this.#finding ??= this.#options.locate().finally(() => (this.#finding = undefined));
    this.#url = await this.#finding;
  }

  /** Of all that find the session lost, one begins it anew. */
  async #renew(lostSession: Session | undefined): Promise<void> {
    if (lostSession === undefined || this.#session !== lostSession) return;
    this.#renewing ??= renew(lostSession, this.#url, this.#ending.signal)
      .then((session) => {
        this.#session = session;
        void this.#listen();
      })
      .finally(() => (this.#renewing = undefined));
    await this.#renewing;
  }

  async #refuse(request: Request, message: string): Promise<void> {
    await this.#options.write(errorText(request.id, { code: -32_000, message }));
  }
}

const wasNeverSent = (error: unknown): boolean => NEVER_SENT.has(errnoOf(error) ?? '');
/** Where the server is was asked, and the answer is that it is not to be had. */
const isFinal = (error: unknown): boolean => error instanceof SkepError && !error.code.startsWith('bridge/');
const lost = (): SkepError => new SkepError('bridge/lost');
const refusal = (status: number): SkepError =>
  new SkepError('bridge/lost', { message: `the server answered with status ${status}, and no message` });
const whyNot = (error: unknown): string => (error instanceof SkepError ? error.message : lost().message);
