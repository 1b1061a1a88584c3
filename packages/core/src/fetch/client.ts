import type { LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { SkepError } from '../errors/skep-error.ts';
import { errnoOf } from '../files/errno.ts';
import { jsonErrorPlace } from '../json/error-place.ts';
import { redactUrl } from '../log/redact.ts';
import { checkHost, guardedLookup, type Resolve } from './address-guard.ts';
import { trustedWith } from './ca-bundle.ts';
import { readLimited } from './read-limited.ts';
import { defaultRetry, parseRetryAfter, sleep, withRetry, type RetryOptions, type Verdict } from './retry.ts';
import { saidIn } from './said.ts';

export interface ClientOptions {
  /** For one try, in milliseconds, body included. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** False refuses private, loopback and link-local addresses, also behind host names and redirects. */
  readonly allowPrivate: boolean;
  readonly userAgent: string;
  /** Extra certificate authorities, PEM (readCaBundle). */
  readonly ca?: readonly string[];
  readonly retry?: Partial<RetryOptions>;
  /** Puts what an error says in words into the message, for a person who has chosen the server. */
  readonly tellWhatWasSaid?: true;
  /** Replaces the system's resolver. */
  readonly resolve?: Resolve;
  /** Milliseconds since the epoch, for Retry-After dates. */
  readonly now?: () => number;
}

export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface Answer {
  /** 200 to 299, or 304 when the request was conditional. */
  readonly status: number;
  /** Lower-case names; the first value of a repeated header. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** After redirects. */
  readonly url: string;
}

/** GET requests of Skep itself: registries, catalogues, metadata. Not for proxied traffic. */
export interface Client {
  /**
   * Fails with `fetch/invalid-url`, `-refused-address`, `-unreachable`, `-timeout`, `-bad-status` (see `statusOf`) or
   * `-too-large`, or with the signal's reason. Passing network failures, 429, 500, 502, 503 and 504 are tried again.
   */
  get(url: string, options?: GetOptions): Promise<Answer>;
  /** As `get`, parsed; fails with `fetch/not-json`. The caller decodes the result. */
  getJson(url: string, options?: GetOptions): Promise<unknown>;
  /** Ends kept connections. Idempotent. */
  close(): Promise<void>;
}

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Network failures that may be over a moment later; a wrong name or certificate will not. */
const PASSING: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const RETRIED: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);

/** undici is loaded on first use: most commands make no request. */
export async function createClient(options: ClientOptions): Promise<Client> {
  const { Agent, request } = await import('undici');
  const lookup: { lookup?: LookupFunction } = options.allowPrivate
    ? {}
    : { lookup: guardedLookup(options.resolve) };
  const dispatcher = new Agent({
    connect: {
      timeout: options.timeoutMs,
      ...lookup,
      ...(options.ca === undefined ? {} : { ca: trustedWith(options.ca) }),
    },
  });
  const retry = { ...defaultRetry, random: Math.random, sleep, ...options.retry };
  const send: Send = (url, headers, signal) => request(url, { dispatcher, method: 'GET', headers, signal });
  const get = (url: string, { headers = {}, signal }: GetOptions = {}): Promise<Answer> =>
    withRetry(
      () => getOnce({ url: parseUrl(url), headers, signal }, send, options),
      judge,
      signal === undefined ? retry : { ...retry, signal },
    );
  return {
    get,
    async getJson(url, getOptions) {
      const answer = await get(url, {
        ...getOptions,
        headers: { accept: 'application/json', ...getOptions?.headers },
      });
      return parseBody(answer);
    },
    close: () => dispatcher.destroy(),
  };
}

/** The HTTP status behind a `fetch/bad-status` error; undefined for other errors. */
export function statusOf(error: unknown): number | undefined {
  const status =
    error instanceof SkepError && error.code === 'fetch/bad-status' ? error.detail['status'] : undefined;
  return typeof status === 'number' ? status : undefined;
}

type Send = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
) => Promise<Dispatcher.ResponseData>;

interface Request {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
}

/** One try: follows redirects under one deadline. */
async function getOnce(request: Request, send: Send, options: ClientOptions): Promise<Answer> {
  const deadline = AbortSignal.timeout(options.timeoutMs);
  const signal = request.signal === undefined ? deadline : AbortSignal.any([request.signal, deadline]);
  try {
    return await follow({ ...request, signal }, send, options);
  } catch (error) {
    request.signal?.throwIfAborted();
    if (deadline.aborted) {
      const message = `"${shown(request.url)}" did not answer within ${String(options.timeoutMs)} ms`;
      throw new SkepError('fetch/timeout', { message, cause: error });
    }
    throw asFetchError(error, request.url);
  }
}

async function follow(
  first: Request & { signal: AbortSignal },
  send: Send,
  options: ClientOptions,
): Promise<Answer> {
  let { url, headers } = first;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    if (!options.allowPrivate) checkHost(url);
    // Bodies are taken as they are sent: a compressed one could exceed every limit once unpacked.
    const all = { 'user-agent': options.userAgent, 'accept-encoding': 'identity', ...headers };
    const response = await send(url, all, first.signal);
    const location = headerOf(response, 'location');
    if (!REDIRECTS.has(response.statusCode) || location === undefined) {
      return await readAnswer(response, url, options);
    }
    drop(response.body);
    const next = redirectTarget(url, location);
    if (next.origin !== url.origin) headers = withoutCredentials(headers);
    url = next;
  }
  throw new SkepError('fetch/bad-status', { message: `"${shown(first.url)}" redirects too often` });
}

async function readAnswer(
  response: Dispatcher.ResponseData,
  url: URL,
  options: ClientOptions,
): Promise<Answer> {
  const { statusCode: status } = response;
  if ((status < 200 || status > 299) && status !== 304) {
    const retryAfterMs = parseRetryAfter(headerOf(response, 'retry-after'), (options.now ?? Date.now)());
    const asked = options.tellWhatWasSaid === true && !RETRIED.has(status);
    const said = asked ? await saidIn(response.body) : undefined;
    drop(response.body);
    throw new SkepError('fetch/bad-status', {
      message: `"${shown(url)}" answered with status ${String(status)}${said === undefined ? '' : `: ${said}`}`,
      detail: { status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
    });
  }
  const body = await readLimited(response.body, options.maxBytes, headerOf(response, 'content-length'));
  const names = Object.keys(response.headers);
  const headers = Object.fromEntries(names.map((name) => [name, headerOf(response, name) ?? '']));
  return { status, headers, body, url: url.href };
}

/** Of an answer whose head says all: a server may never end its body, so the connection ends instead. */
function drop(body: Dispatcher.ResponseData['body']): void {
  // Destroying it is an error to whoever reads it, which is nobody.
  body.on('error', () => undefined).destroy();
}

function headerOf(response: Dispatcher.ResponseData, name: string): string | undefined {
  const value = response.headers[name];
  return typeof value === 'object' ? value[0] : value;
}

function judge(error: unknown): Verdict {
  if (!(error instanceof SkepError)) return { retry: false };
  const { retryAfterMs, errno } = error.detail;
  if (error.code === 'fetch/unreachable') return { retry: typeof errno === 'string' && PASSING.has(errno) };
  if (!RETRIED.has(statusOf(error) ?? 0)) return { retry: false };
  return { retry: true, ...(typeof retryAfterMs === 'number' ? { afterMs: retryAfterMs } : {}) };
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SkepError('fetch/invalid-url', { message: `"${redactUrl(text)}" is not an http or https URL` });
  }
  return url;
}

/** Never from https to http: what was protected would travel in the clear. */
function redirectTarget(from: URL, location: string): URL {
  const target = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  if (target === undefined || (target.protocol !== 'https:' && target.protocol !== from.protocol)) {
    throw new SkepError('fetch/invalid-url', {
      message: `"${shown(from)}" redirects to "${redactUrl(location)}", which is refused`,
    });
  }
  return target;
}

function withoutCredentials(headers: Readonly<Record<string, string>>): Record<string, string> {
  const secret = new Set(['authorization', 'cookie', 'proxy-authorization']);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !secret.has(name.toLowerCase())));
}

function asFetchError(error: unknown, url: URL): SkepError {
  if (error instanceof SkepError) return error;
  const errno = errnoOf(error);
  const message = `cannot reach "${shown(url)}": ${errno ?? 'unexpected failure'}`;
  return new SkepError('fetch/unreachable', { message, detail: { errno }, cause: error });
}

function parseBody(answer: Answer): unknown {
  const text = answer.body.toString('utf8');
  try {
    return JSON.parse(text);
  } catch (cause) {
    const place = jsonErrorPlace(text);
    const where = place === undefined ? '' : ` (line ${String(place.line)}, column ${String(place.column)})`;
    const message = `"${shown(new URL(answer.url))}" did not answer with JSON${where}`;
    throw new SkepError('fetch/not-json', { message, cause });
  }
}

/** For messages: without user information and query, either may hold a secret. */
function shown(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}
