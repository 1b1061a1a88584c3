import type { Readable } from 'node:stream';
import { systemClock } from '../time/clock.ts';
import { SkepError } from '../errors/skep-error.ts';
import { isRecord } from '../json/is-record.ts';
import { jsonErrorPlace } from '../json/judge.ts';
import { parseJson } from '../json/parsed-json.ts';
import { redactUrl } from '../log/redact.ts';
import { readLimited } from './read-limited.ts';
import {
  openRequester,
  shownUrl,
  withDeadline,
  type Connections,
  type Requester,
  type Shown,
  type StreamedAnswer,
} from './requester.ts';
import { defaultRetry, parseRetryAfter, withRetry, type RetryOptions, type Verdict } from './retry.ts';

export interface ClientOptions extends Pick<Connections, 'allowPrivate' | 'resolve' | 'ca'> {
  /** For one try, in milliseconds, body included. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly userAgent: string;
  readonly retry?: Partial<RetryOptions>;
  /** The message quotes what an error says, for a person who has chosen the server. */
  readonly tellWhatWasSaid?: true;
  /** Milliseconds since the epoch, for Retry-After dates. */
  readonly now?: () => number;
}

export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** `refuse` fails with `fetch/bad-status` where the server redirects: what is sent is for this address alone. */
  readonly redirects?: 'follow' | 'refuse';
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

/** GET requests of Skep itself, not for proxied traffic. */
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

/** Network failures that may be over a moment later; a wrong name or certificate will not. */
const PASSING: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'EAI_AGAIN',
  'ETIMEDOUT',
]);
const RETRIED: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);

export function createClient(options: ClientOptions): Client {
  const requester = openRequester(options);
  const retry = { ...defaultRetry, random: Math.random, sleep: systemClock.sleep, ...options.retry };
  const get = (url: string, { headers = {}, signal, redirects }: GetOptions = {}): Promise<Answer> =>
    withRetry(
      () => getOnce({ url: parseUrl(url), headers, signal, redirects }, requester, options),
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
    close: () => Promise.resolve(requester.close()),
  };
}

interface Said {
  readonly url: URL;
  readonly status: number;
  /** See `saidIn`. */
  readonly said: string | undefined;
}

/** What an answer is that is no success; `statusOf` and `saidBy` read it. */
export function badStatus({ url, status, said }: Said, retryAfterMs?: number): SkepError {
  return new SkepError('fetch/bad-status', {
    message: `"${shownUrl(url)}" answered with status ${status}${said === undefined ? '' : `: ${said}`}`,
    detail: {
      status,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(said === undefined ? {} : { said }),
    },
  });
}

/** What the server said of a `fetch/bad-status`: hostile text. Undefined for other errors, and where it said nothing. */
export function saidBy(error: unknown): string | undefined {
  const said = statusOf(error) === undefined ? undefined : (error as SkepError).detail['said'];
  return typeof said === 'string' ? said : undefined;
}

/** The HTTP status behind a `fetch/bad-status` error; undefined for other errors. */
export function statusOf(error: unknown): number | undefined {
  const status =
    error instanceof SkepError && error.code === 'fetch/bad-status' ? error.detail['status'] : undefined;
  return typeof status === 'number' ? status : undefined;
}

interface Request {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  readonly redirects: GetOptions['redirects'];
}

/** One try: follows redirects and reads the body under one deadline. */
function getOnce(
  { url, headers, signal, redirects }: Request,
  requester: Requester,
  options: ClientOptions,
): Promise<Answer> {
  // A compressed body could exceed every limit once unpacked.
  let all: Record<string, string> = {
    'user-agent': options.userAgent,
    'accept-encoding': 'identity',
    ...headers,
  };
  const showTo = (at: URL): Shown => {
    // For good: a stranger may redirect back.
    if (at.origin !== url.origin) all = withoutCredentials(all);
    return { headers: all };
  };
  return withDeadline({ url, timeoutMs: options.timeoutMs, signal }, async (inTime) =>
    readAnswer(
      await requester.send(url, {
        showTo,
        redirects: redirects === 'refuse' ? 'answer' : 'follow',
        signal: inTime,
      }),
      options,
    ),
  );
}

async function readAnswer(answer: StreamedAnswer, options: ClientOptions): Promise<Answer> {
  const { status, headers, url } = answer;
  if ((status < 200 || status > 299) && status !== 304) {
    const retryAfterMs = parseRetryAfter(headers['retry-after'], (options.now ?? Date.now)());
    const asked = options.tellWhatWasSaid === true && !RETRIED.has(status);
    const said = asked ? await saidIn(answer.body) : undefined;
    answer.drop();
    throw badStatus({ url, status, said }, retryAfterMs);
  }
  const body = await readLimited(answer.body, options.maxBytes, headers['content-length']);
  return { status, headers, body, url: url.href };
}

function judge(error: unknown): Verdict {
  if (!(error instanceof SkepError)) return { retry: false };
  const { retryAfterMs, errno } = error.detail;
  if (error.code === 'fetch/unreachable') return { retry: typeof errno === 'string' && PASSING.has(errno) };
  if (!RETRIED.has(statusOf(error) ?? 0)) return { retry: false };
  return { retry: true, ...(typeof retryAfterMs === 'number' ? { afterMs: retryAfterMs } : {}) };
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SkepError('fetch/invalid-url', { message: `"${redactUrl(text)}" is not an http or https URL` });
  }
  return url;
}

function withoutCredentials(headers: Readonly<Record<string, string>>): Record<string, string> {
  const secret = new Set(['authorization', 'cookie', 'proxy-authorization']);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !secret.has(name.toLowerCase())));
}

function parseBody(answer: Answer): unknown {
  const text = answer.body.toString('utf8');
  try {
    return parseJson(text);
  } catch (cause) {
    const place = jsonErrorPlace(text);
    const where = place === undefined ? '' : ` (line ${place.line}, column ${place.column})`;
    const message = `"${shownUrl(new URL(answer.url))}" did not answer with JSON${where}`;
    throw new SkepError('fetch/not-json', { message, cause });
  }
}

const MAX_ERROR_BYTES = 16 * 1024;
const MAX_SHOWN = 300;
/** What comes later is not waited for: a server may never end its body. */
const PATIENCE_MS = 1_000;

/**
 * What the body of an error says: `error`, `detail` or `message` of a JSON document and the first of its
 * `errors` (as RFC 9457); undefined when it says nothing in time. Hostile text: clean it for a terminal.
 * Never fails.
 */
export async function saidIn(body: Readable): Promise<string | undefined> {
  const timer = setTimeout(() => body.destroy(), PATIENCE_MS);
  try {
    const document: unknown = JSON.parse((await readLimited(body, MAX_ERROR_BYTES)).toString('utf8'));
    const error = member(document, 'error');
    const said = [error, member(error, 'message'), member(document, 'detail'), member(document, 'message')];
    const errors = member(document, 'errors');
    const first: unknown = Array.isArray(errors) ? member(errors[0], 'message') : undefined;
    const words = [said.find(isText), first].filter(isText).join(': ');
    return words === '' ? undefined : words.slice(0, MAX_SHOWN);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

function member(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
