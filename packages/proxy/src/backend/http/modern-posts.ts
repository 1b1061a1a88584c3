import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { memberSlice } from '@skep/core/json/scan.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Credentials } from '../../call/call.ts';
import { META, withEnvelope } from '../../message/envelope.ts';
import { modernHeaders } from '../../message/era.ts';
import { memberAt, readMessage, requestOf, type Request, type Response } from '../../message/json-rpc.ts';
import { RepeatedArguments } from '../../message/param-headers.ts';
import type { LinkEvents } from '../link.ts';
import type { Peer } from '../port.ts';
import { exchange, type Reply } from './exchange.ts';
import { shownIn } from './shown-in.ts';
import type { Upstream } from './upstream.ts';

const BOTH_FORMS = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
const LIST = 'tools/list';
/** Of the list of tools that is asked for here. */
const MAX_PAGES = 100;
/** It is asked for at most so often: nobody can have the server list its tools with every call. */
const AGAIN_AFTER_MS = 5_000;
/** No id of the mux is a string. */
const LIST_ID = '"skep-tools"';
/** Headers `Mcp-Param-…`. */
type Repeated = Readonly<Record<string, string>>;
/** Headers and body do not agree (MCP 2026-07-28). */
const MISMATCH = -32020;

export interface ModernPostsOptions extends Pick<LinkEvents, 'onLine' | 'onFailed'> {
  readonly url: URL;
  readonly upstream: Upstream;
  readonly credentials: () => Credentials | undefined;
  readonly clock: Pick<Clock, 'elapsed'>;
  /** Aborts when the link ends. */
  readonly ending: AbortSignal;
  /** Told how many characters wait for the server, more or less than before. */
  readonly waiting: (characters: number) => void;
  readonly failed: (id: string, error: unknown) => void;
}

/**
 * Requests of the modern revision to a server over HTTP, which have no session. Each has the headers that repeat what is in it;
 * what tools want repeated is read in their lists, and where a server misses it, is asked for once.
 */
export class ModernPosts {
  readonly #options: ModernPostsOptions;
  /** Under way, by their ids. */
  readonly #calls = new Map<string, AbortController>();
  readonly #repeated = new RepeatedArguments();
  /** Under way. */
  #listing: Promise<boolean> | undefined;
  #listedAt = -Infinity;

  constructor(options: ModernPostsOptions) {
    this.#options = options;
  }

  /** The end of its stream is what cancels a request. */
  cancel(id: string): void {
    this.#calls.get(id)?.abort();
  }

  /** Never rejects. */
  async post(request: Request, peer: Peer | undefined): Promise<void> {
    const { id, text, method } = request;
    const { onFailed, ending, waiting, failed } = this.#options;
    const cancelling = new AbortController();
    const signal = AbortSignal.any([ending, cancelling.signal]);
    this.#calls.set(id, cancelling);
    waiting(text.length);
    try {
      // Headers that a client gave count as it gave them: what does not agree is for the server to refuse.
      const repeated = peer?.headers ?? this.#repeated.headersFor(request);
      const reply = await this.#send(request, signal, repeated).finally(() => waiting(-text.length));
      const isOwn = method === 'tools/call' && peer?.headers === undefined;
      const last = await (isOwn && reply.status === 400
        ? this.#again(request, reply, { signal, repeated })
        : this.#hear(reply, request));
      onFailed(id, ...last.failure());
    } catch (error) {
      if (!cancelling.signal.aborted) failed(id, error);
    } finally {
      this.#calls.delete(id);
    }
  }

  #send(request: Request, signal: AbortSignal, repeated: Repeated = {}): Promise<Reply> {
    const { url, upstream: via, credentials } = this.#options;
    const headers = { ...BOTH_FORMS, ...repeated, ...modernHeaders(request), ...shownIn(credentials()) };
    return exchange(url, { method: 'POST', headers, body: request.text, signal, via });
  }

  /** Hands on the messages of a reply, and gives that back. */
  async #hear(reply: Reply, { id, method }: Request): Promise<Reply> {
    for await (const { name = 'message', data } of reply.messages()) {
      if (name !== 'message' || data === '') continue;
      if (method === LIST) this.#learn(readResponse(data));
      this.#options.onLine(data, id);
    }
    return reply;
  }

  /** A call that was refused for want of headers was not made; with those that its tool wants it is made once more. */
  async #again(
    request: Request,
    refused: Reply,
    { signal, repeated }: { readonly signal: AbortSignal; readonly repeated: Repeated },
  ): Promise<Reply> {
    let refusal: string | undefined;
    for await (const { name = 'message', data } of refused.messages()) {
      if (name !== 'message' || data === '') continue;
      const answer = readResponse(data);
      if (answer && memberAt(answer.value, ['error', 'code']) === MISMATCH) refusal = data;
      else this.#options.onLine(data, request.id);
      if (answer) break;
    }
    if (refusal === undefined) return refused;
    const wanted = await this.#wantedOf(request, repeated);
    if (wanted !== undefined) return this.#hear(await this.#send(request, signal, wanted), request);
    this.#options.onLine(refusal, request.id);
    return refused;
  }

  /** The headers that a call wants instead of those; undefined where nobody knows of others. */
  async #wantedOf(request: Request, sent: Repeated): Promise<Repeated | undefined> {
    const others = (): Repeated | undefined => {
      const wanted = this.#repeated.headersFor(request);
      return JSON.stringify(wanted) === JSON.stringify(sent) ? undefined : wanted;
    };
    return others() ?? ((await this.#listTools()) ? others() : undefined);
  }

  /** Resolves true when the whole list was read, and false also where it was a moment ago; all who wait share one. */
  #listTools(): Promise<boolean> {
    const { clock } = this.#options;
    if (this.#listing) return this.#listing;
    if (clock.elapsed() - this.#listedAt < AGAIN_AFTER_MS) return Promise.resolve(false);
    this.#listedAt = clock.elapsed();
    this.#listing = this.#list().finally(() => (this.#listing = undefined));
    return this.#listing;
  }

  async #list(): Promise<boolean> {
    const { ending } = this.#options;
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const asked = requestOf(LIST_ID, LIST, typeof cursor === 'string' ? { cursor } : {});
      const reply = await this.#send(withEnvelope(asked, { [META.capabilities]: {} }), ending);
      let answer: Response | undefined;
      for await (const { data } of reply.messages()) answer = readResponse(data) ?? answer;
      if (answer === undefined || answer.failed) return false;
      this.#learn(answer);
      const next = memberSlice(answer.text, ['result', 'nextCursor']);
      cursor = next && parsedJson(next);
      if (typeof cursor !== 'string') return true;
    }
    return false;
  }

  #learn(answer: Response | undefined): void {
    if (answer !== undefined) this.#repeated.learn(answer);
  }
}

function readResponse(text: string): Response | undefined {
  const message = text === '' ? 'not-json' : readMessage(text);
  return typeof message !== 'string' && message.kind === 'response' ? message : undefined;
}
