import http, { type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkHost, guardedLookup, type Resolve } from '@skep/core/fetch/address-guard.ts';
import { trustedWith } from '@skep/core/fetch/ca-bundle.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import { readText } from '@skep/core/files/read-limited.ts';

/** Which `http:` addresses of an identity provider are accepted. `https:` always is. */
export type PlainHttp = 'never' | 'loopback' | 'any';

export interface IssuerFetchOptions {
  readonly plainHttp: PlainHttp;
  /** False refuses private addresses, after resolution, on the address that is dialled. */
  readonly allowPrivate: boolean;
  /** Further certificate authorities, PEM. */
  readonly ca?: readonly string[] | undefined;
  /** A file whose content is sent as bearer token; read for every request, because such tokens rotate. */
  readonly tokenFile?: string | undefined;
  readonly resolve?: Resolve | undefined;
}

export interface IssuerRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: URLSearchParams | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Requests to an identity provider: metadata, keys, introspection. */
export interface IssuerFetch {
  /**
   * The answer whatever its status, fully read. Redirects are not followed. Fails with `fetch/invalid-url`,
   * `-refused-address`, `-unreachable` or `-too-large`, with `file/*` for the token file, or with the signal's reason.
   */
  readonly fetch: (url: string, request?: IssuerRequest) => Promise<Response>;
  /** Ends kept connections. Idempotent. */
  readonly close: () => void;
}

const MAX_BYTES = 1024 * 1024;
const TIMEOUT_MS = 5_000;
const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Throws `auth/invalid-provider` for an address that is no https URL, nor http where `plain` accepts it. */
export function checkIssuerUrl(text: string, plain: PlainHttp): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const accepted =
    url?.protocol === 'https:' ||
    (url?.protocol === 'http:' && (plain === 'any' || (plain === 'loopback' && LOOPBACK.has(url.hostname))));
  if (url === undefined || !accepted || url.username !== '' || url.password !== '') {
    const shown = url === undefined ? text : `${url.protocol}//${url.host}${url.pathname}`;
    throw new SkepError('auth/invalid-provider', {
      message: `address "${shown}" of an identity provider must be an absolute https URL without credentials`,
    });
  }
  return url;
}

export function createIssuerFetch(options: IssuerFetchOptions): IssuerFetch {
  const shared = {
    keepAlive: true,
    ...(options.allowPrivate ? {} : { lookup: guardedLookup(options.resolve) }),
  };
  const plain = new http.Agent(shared);
  const secure = new https.Agent({
    ...shared,
    minVersion: 'TLSv1.2',
    ...(options.ca === undefined ? {} : { ca: trustedWith(options.ca) }),
  });
  return {
    close() {
      plain.destroy();
      secure.destroy();
    },
    async fetch(text, { method = 'GET', headers = {}, body, signal } = {}) {
      const url = checkIssuerUrl(text, options.plainHttp);
      // An address in the URL is never looked up, so the guard of the connection does not see it.
      if (!options.allowPrivate) checkHost(url);
      const deadline = AbortSignal.timeout(TIMEOUT_MS);
      const request = {
        method,
        agent: url.protocol === 'https:' ? secure : plain,
        headers: { ...headers, 'accept-encoding': 'identity', ...(await bearer(options.tokenFile, method)) },
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      };
      try {
        const answer = await send(url, request, body?.toString());
        const bytes = await readLimited(answer, MAX_BYTES, answer.headers['content-length']);
        return new Response(new Uint8Array(bytes), {
          status: answer.statusCode ?? 502,
          headers: flat(answer.headers),
        });
      } catch (cause) {
        signal?.throwIfAborted();
        throw asFetchError(cause, url);
      }
    },
  };
}

function send(url: URL, options: RequestOptions, body: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { request } = url.protocol === 'https:' ? https : http;
    request(url, options).on('response', resolve).on('error', reject).end(body);
  });
}

/** For reading metadata and keys only: introspection has credentials of its own. */
async function bearer(tokenFile: string | undefined, method: string): Promise<Record<string, string>> {
  if (tokenFile === undefined || method !== 'GET') return {};
  const token = await readText(tokenFile, { maxBytes: 64 * 1024, what: 'token file' });
  return { authorization: `Bearer ${token.trim()}` };
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  );
}

function asFetchError(cause: unknown, url: URL): SkepError {
  if (cause instanceof SkepError) return cause;
  const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unexpected failure';
  return new SkepError('fetch/unreachable', {
    message: `cannot reach "${url.protocol}//${url.host}${url.pathname}": ${reason}`,
    cause,
  });
}
