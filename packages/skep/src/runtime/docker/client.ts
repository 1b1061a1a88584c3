import {
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { Endpoint } from './endpoint.ts';
import { refused, refusedPing, unreachable } from './failure.ts';

export interface EngineRequest {
  /** Default GET. */
  readonly method?: 'POST' | 'PUT' | 'DELETE';
  /** Below the version prefix, for example `/containers/json`. */
  readonly path: string;
  /** A list gives the name several times. */
  readonly query?: Readonly<Record<string, string | readonly string[]>>;
  /** The engine's `filters` parameter. */
  readonly filters?: Readonly<Record<string, readonly string[]>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** A stream is sent as a tar archive, anything else as JSON. */
  readonly body?: Readable | object;
  readonly signal?: AbortSignal | undefined;
  /** Called once it has gone out. */
  readonly sent?: (() => void) | undefined;
}

export interface EngineAnswer {
  readonly status: number;
  /** Parsed JSON where the engine sent JSON, else the text. */
  readonly body: unknown;
}

export interface Hijacked {
  readonly socket: Duplex;
  /** Bytes that came with the upgrade answer. */
  readonly head: Buffer;
}

/** No engine is silent for so long about what it knows; one that hangs is for ever. */
const SILENT_MS = 60_000;

/** Of an answer that is read whole, or of one line of a stream: far more than an engine says of thousands of containers. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export interface Ping {
  readonly apiVersion: string;
  readonly podman: boolean;
}

/**
 * Speaks the Docker engine API over one endpoint. Connects at the first call, agrees on an API version once and again
 * after the engine was away. A connection that cannot be made or breaks is `runtime/engine-unreachable`.
 */
export class EngineClient {
  readonly endpoint: Endpoint;
  readonly #maxBytes: number;
  readonly #silentMs: number;
  #ping: Promise<Ping> | undefined;

  constructor(endpoint: Endpoint, { maxBytes = MAX_ANSWER_BYTES, silentMs = SILENT_MS } = {}) {
    this.endpoint = endpoint;
    this.#maxBytes = maxBytes;
    this.#silentMs = silentMs;
  }

  /** Asks the engine who it is; fails with `runtime/engine-unreachable`. */
  async ping(signal?: AbortSignal): Promise<Ping> {
    const response = await this.#send('/_ping', { path: '', signal }, this.#silentMs);
    const { status, body } = await this.#answer(response, signal);
    if (status !== 200) throw refusedPing(this.endpoint, status, body);
    const offered = response.headers['api-version'];
    return {
      apiVersion: negotiateVersion(typeof offered === 'string' ? offered : ''),
      podman: response.headers['libpod-api-version'] !== undefined,
    };
  }

  /**
   * One request, its answer read whole; its status is the caller's business. A GET is answered from what the engine knows:
   * one about which it is silent for a minute fails, while what it is told to do takes as long as it takes.
   */
  async call(request: EngineRequest): Promise<EngineAnswer> {
    const silentMs = request.method === undefined ? this.#silentMs : undefined;
    return this.#answer(await this.#send(await this.#path(request), request, silentMs), request.signal);
  }

  /**
   * As `call`, where any status but 2xx and those in `also` is `runtime/engine-refused`. `what` names the attempt, for
   * example `create container "x"`.
   */
  async ask(what: string, request: EngineRequest, ...also: readonly number[]): Promise<EngineAnswer> {
    const answer = await this.call(request);
    if ((answer.status >= 200 && answer.status < 300) || also.includes(answer.status)) return answer;
    throw refused(what, answer);
  }

  /** One request; the caller reads or destroys its answer. Any status but 200 throws what `refusal` makes. */
  async stream(
    request: EngineRequest,
    refusal: (answer: EngineAnswer) => SkepError,
  ): Promise<IncomingMessage> {
    const response = await this.#send(await this.#path(request), request);
    if (response.statusCode === 200) return response;
    throw refusal(await this.#answer(response, request.signal));
  }

  /**
   * Yields each JSON value of a progress or event stream. Chunks do not respect lines, and an engine that goes away ends
   * the stream with an error (`runtime/engine-unreachable`), so a cut stream is never taken for a finished one.
   */
  async *lines(request: EngineRequest, refusal: (answer: EngineAnswer) => SkepError): AsyncGenerator {
    const response = await this.stream(request, refusal);
    let pending = '';
    try {
      for await (const chunk of response.setEncoding('utf8')) {
        const lines = (pending + String(chunk)).split('\n');
        pending = lines.pop() ?? '';
        if (pending.length > this.#maxBytes) throw tooLong(this.#maxBytes);
        for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as unknown;
      }
      if (pending.trim() !== '') yield JSON.parse(pending) as unknown;
    } catch (error) {
      throw unreachable(this.endpoint, error, request.signal);
    } finally {
      response.destroy();
    }
  }

  /** Upgrades to a raw connection (`attach`). A refusal is answered, not thrown. */
  async hijack(request: EngineRequest): Promise<Hijacked | EngineAnswer> {
    const path = await this.#path(request);
    return new Promise((resolve, reject) => {
      const outgoing = this.#open(path, request, { connection: 'Upgrade', upgrade: 'tcp' });
      outgoing.once('upgrade', (_response, socket, head) => resolve({ socket, head }));
      outgoing.once('response', (response) => resolve(this.#answer(response)));
      outgoing.once('error', (error) => reject(unreachable(this.endpoint, error)));
      outgoing.end();
    });
  }

  /** What the engine said of itself when it was first asked. Whoever does not wait any more keeps nobody else from hearing it. */
  async about(signal?: AbortSignal): Promise<Ping> {
    const ping = this.#ping ?? this.ping(signal);
    if (signal === undefined) this.#ping = ping;
    try {
      const said = await ping;
      this.#ping = ping;
      return said;
    } catch (error) {
      if (this.#ping === ping) this.#ping = undefined;
      throw error;
    }
  }

  async #path(request: EngineRequest): Promise<string> {
    const { apiVersion } = await this.about(request.signal);
    const query = new URLSearchParams(
      Object.entries(request.query ?? {}).flatMap(([name, value]) =>
        [value].flat().map((one): [string, string] => [name, one]),
      ),
    );
    if (request.filters !== undefined) query.set('filters', JSON.stringify(request.filters));
    return `/v${apiVersion}${request.path}${query.size === 0 ? '' : `?${query.toString()}`}`;
  }

  #send(path: string, request: EngineRequest, silentMs?: number): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const { body } = request;
      const streamed = body !== undefined && isStream(body);
      const json = body === undefined || streamed ? undefined : Buffer.from(JSON.stringify(body));
      const outgoing = this.#open(path, request, {
        ...(json ? { 'content-type': 'application/json', 'content-length': String(json.length) } : {}),
        ...(streamed ? { 'content-type': 'application/x-tar' } : {}),
      });
      if (silentMs !== undefined) breakWhenSilent(outgoing, silentMs);
      outgoing.once('response', resolve);
      if (request.sent) outgoing.once('finish', request.sent);
      outgoing.once('error', (error) => {
        // Who does not wait any more says nothing of the engine.
        if (request.signal?.aborted !== true) this.#ping = undefined;
        reject(unreachable(this.endpoint, error, request.signal));
      });
      if (streamed) {
        body.once('error', (error) => outgoing.destroy(error));
        body.pipe(outgoing);
      } else outgoing.end(json);
    });
  }

  /**
   * Reads it whole. A connection that breaks in the middle is an error, never a short text; too much of it is
   * `fetch/too-large`.
   */
  async #answer(response: IncomingMessage, signal?: AbortSignal): Promise<EngineAnswer> {
    try {
      const body = (await readLimited(response, this.#maxBytes)).toString('utf8');
      const value = parsedJson(body);
      // Plain-text answers such as "OK" are legal.
      return { status: response.statusCode ?? 0, body: value === undefined ? body : value };
    } catch (error) {
      throw unreachable(this.endpoint, error, signal);
    }
  }

  #open(path: string, request: EngineRequest, headers: Record<string, string>): ClientRequest {
    return httpRequest({
      ...connectionTo(this.endpoint),
      path,
      method: request.method ?? 'GET',
      headers: { host: 'docker', ...headers, ...request.headers },
      ...(request.signal ? { signal: request.signal } : {}),
    });
  }
}

/** Ends a request on whose connection nothing comes for so long, also in the middle of the answer. */
function breakWhenSilent(outgoing: ClientRequest, silentMs: number): void {
  let waiting: ClientRequest | IncomingMessage = outgoing;
  outgoing.once('response', (response) => (waiting = response));
  outgoing.setTimeout(silentMs, () =>
    waiting.destroy(Object.assign(new Error('no answer'), { code: 'TimeoutError' })),
  );
}

/** A connection for each request: a unix socket costs nothing to open, and a kept one would keep the program alive. */
function connectionTo(endpoint: Endpoint): RequestOptions & { readonly servername?: string } {
  // Node would look whether the header names an address, with expressions that take milliseconds to compile.
  if (endpoint.kind === 'unix') return { agent: false, socketPath: endpoint.path, servername: '' };
  const { host, port, secure } = endpoint;
  // An agent would connect by itself.
  return secure === undefined ? { agent: false, host, port } : { createConnection: secure };
}

function tooLong(maxBytes: number): SkepError {
  return new SkepError('fetch/too-large', {
    message: `a line of the container engine is longer than ${maxBytes} characters`,
  });
}

function isStream(body: Readable | object): body is Readable {
  return 'pipe' in body;
}

/** Newest engine API this client was written against, and the oldest it can work with. */
const OURS = { newest: 51, oldest: 24 };

/**
 * The API version to speak: the lower of the engine's newest and ours, because engines refuse versions above their own.
 * Takes the `Api-Version` header of `/_ping`. Throws `runtime/engine-refused` for an engine that is too old.
 */
export function negotiateVersion(offered: string): string {
  const minor = Number(/^1\.(\d{1,3})$/.exec(offered)?.[1] ?? Number.NaN);
  if (!(minor >= OURS.oldest)) {
    throw new SkepError('runtime/engine-refused', {
      message: `the container engine speaks API version "${offered}", at least 1.${OURS.oldest} is needed`,
      hint: 'update the container engine',
    });
  }
  return `1.${Math.min(minor, OURS.newest)}`;
}
