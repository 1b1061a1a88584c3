import type { Readable } from 'node:stream';
import { SkepError } from '../errors/skep-error.ts';
import { errnoOf } from '../files/errno.ts';
import { redactUrl } from '../log/redact.ts';
import { trustedWith } from './ca-bundle.ts';

/** How connections are made: what a person has set for the program on whose behalf they are. */
export interface StreamOptions {
  readonly userAgent: string;
  /** Extra certificate authorities, PEM. */
  readonly ca: readonly string[];
  /** False only where the person has switched the check off for that program. */
  readonly verify: boolean;
  /** Addresses of forward proxies; empty for none. */
  readonly httpProxy: string;
  readonly httpsProxy: string;
  /** As in NO_PROXY. */
  readonly noProxy: string;
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

export interface StreamedAnswer {
  readonly status: number;
  /** Lower-case names; the first value of a repeated header. */
  readonly headers: Readonly<Record<string, string>>;
  /** Must be read to its end, or `drop` called. */
  readonly body: Readable;
  /** Ends a body that nobody wants. */
  readonly drop: () => void;
  /** After redirects. */
  readonly url: URL;
}

/** GET requests whose answers are passed on as they come. */
export interface Streams {
  /**
   * Follows redirects; `showTo` is asked for each address, so that credentials never travel to another. Any status is an
   * answer. Fails with `fetch/unreachable` or `fetch/invalid-url`, or with the signal's reason.
   */
  get(url: URL, showTo: (url: URL) => Shown | Promise<Shown>, signal: AbortSignal): Promise<StreamedAnswer>;
  /** Ends all connections. Idempotent. */
  close(): Promise<void>;
}

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const CONNECT_MS = 15_000;
/** Longest silence of a server, before its answer and in the middle of it. */
const SILENCE_MS = 60_000;

/** undici is loaded on first use: most commands make no request. */
export async function openStreams(options: StreamOptions): Promise<Streams> {
  const { EnvHttpProxyAgent, request } = await import('undici');
  const connections = (identity?: ClientIdentity) => {
    const tls = { ca: trustedWith(options.ca), rejectUnauthorized: options.verify, ...identity };
    return new EnvHttpProxyAgent({
      httpProxy: options.httpProxy,
      httpsProxy: options.httpsProxy,
      noProxy: options.noProxy,
      connect: { timeout: CONNECT_MS, ...tls },
      requestTls: tls,
      proxyTls: { ca: tls.ca },
      headersTimeout: SILENCE_MS,
      bodyTimeout: SILENCE_MS,
    });
  };
  /** A connection shows its certificate to whoever answers, so those of one identity are apart from all others. */
  const dispatchers = new Map<string | undefined, ReturnType<typeof connections>>();
  const dispatcherFor = (identity?: ClientIdentity) => {
    const dispatcher = dispatchers.get(identity?.cert) ?? connections(identity);
    dispatchers.set(identity?.cert, dispatcher);
    return dispatcher;
  };
  return {
    async get(first, showTo, signal) {
      let url = first;
      for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
        const { headers: more, identity } = await showTo(url);
        const headers = { 'user-agent': options.userAgent, ...more };
        const dispatcher = dispatcherFor(identity);
        const answer = await send(() => request(url, { dispatcher, headers, signal }), url, signal);
        const { statusCode: status, body } = answer;
        // Destroying it is an error to whoever reads it, which is nobody.
        const drop = (): void => void body.on('error', () => undefined).destroy();
        const location = single(answer.headers['location']);
        if (!REDIRECTS.has(status) || location === undefined) {
          const names = Object.entries(answer.headers);
          const plain = Object.fromEntries(names.map(([name, value]) => [name, single(value) ?? '']));
          return { status, headers: plain, body, drop, url };
        }
        drop();
        url = redirectTarget(url, location);
      }
      throw new SkepError('fetch/unreachable', { message: `"${shown(first)}" redirects too often` });
    },
    close: async () => void (await Promise.all([...dispatchers.values()].map((one) => one.destroy()))),
  };
}

const single = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'object' ? value[0] : value;

async function send<T>(ask: () => Promise<T>, url: URL, signal: AbortSignal): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    signal.throwIfAborted();
    const errno = errnoOf(cause);
    const message = `cannot reach "${shown(url)}": ${errno ?? 'unexpected failure'}`;
    throw new SkepError('fetch/unreachable', { message, detail: { errno }, cause });
  }
}

/** Never from https to http: what was protected would travel in the clear. */
function redirectTarget(from: URL, location: string): URL {
  const target = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  if (target !== undefined && (target.protocol === 'https:' || target.protocol === from.protocol))
    return target;
  throw new SkepError('fetch/invalid-url', {
    message: `"${shown(from)}" redirects to "${redactUrl(location)}", which is refused`,
  });
}

/** For messages: without user information and query, either may hold a secret. */
function shown(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}
