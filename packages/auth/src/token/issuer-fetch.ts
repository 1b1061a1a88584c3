import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import { openRequester, shownUrl, withDeadline, type Connections } from '@skep/core/fetch/requester.ts';
import { readText } from '@skep/core/files/read-limited.ts';

/** Which `http:` addresses of an identity provider are accepted. `https:` always is. */
export type PlainHttp = 'never' | 'loopback' | 'any';

export interface IssuerFetchOptions extends Omit<Connections, 'verify'> {
  readonly plainHttp: PlainHttp;
  /** A file whose content is sent as bearer token; read for every request, because such tokens rotate. */
  readonly tokenFile?: string | undefined;
  /** For one request with its answer; 5 s by default. */
  readonly timeoutMs?: number;
}

export interface IssuerRequest {
  readonly method?: 'GET' | 'POST' | 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: URLSearchParams | string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Requests to an identity provider: metadata, keys, introspection, exchange. */
export interface IssuerFetch {
  /**
   * The answer whatever its status, fully read. Redirects are not followed. Fails with `fetch/invalid-url`,
   * `-refused-address`, `-unreachable`, `-timeout` or `-too-large`, with `file/*` for the token file, or with the signal's reason.
   */
  readonly fetch: (url: string, request?: IssuerRequest) => Promise<Response>;
  /** Ends kept connections. Idempotent. */
  readonly close: () => void;
}

const MAX_BYTES = 1024 * 1024;
const TIMEOUT_MS = 5_000;
const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Fails with `auth/invalid-provider` for an address that is no https URL, nor http where `plain` accepts it. */
export function checkIssuerUrl(text: string, plain: PlainHttp): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const accepted =
    url?.protocol === 'https:' ||
    (url?.protocol === 'http:' && (plain === 'any' || (plain === 'loopback' && LOOPBACK.has(url.hostname))));
  if (url === undefined || !accepted || url.username !== '' || url.password !== '') {
    const shown = url === undefined ? text : shownUrl(url);
    throw new SkepError('auth/invalid-provider', {
      message: `address "${shown}" of an identity provider must be an absolute https URL without credentials`,
    });
  }
  return url;
}

export function createIssuerFetch(options: IssuerFetchOptions): IssuerFetch {
  const requester = openRequester(options);
  const { timeoutMs = TIMEOUT_MS } = options;
  return {
    close: () => requester.close(),
    async fetch(text, { method = 'GET', headers: given = {}, body, signal } = {}) {
      const url = checkIssuerUrl(text, options.plainHttp);
      const showTo = async () => ({
        headers: { ...given, 'accept-encoding': 'identity', ...(await bearer(options.tokenFile, method)) },
      });
      return withDeadline({ url, timeoutMs, signal }, async (inTime) => {
        const sending = { method, body: body?.toString(), showTo, signal: inTime } as const;
        const answer = await requester.send(url, { ...sending, redirects: 'answer' });
        const { status, headers } = answer;
        const bytes = await readLimited(answer.body, MAX_BYTES, headers['content-length']);
        // 204 and its like may have no body, not even an empty one.
        return new Response(bytes.length === 0 ? null : new Uint8Array(bytes), { status, headers });
      });
    },
  };
}

/** For reading metadata and keys only: introspection has credentials of its own. */
async function bearer(tokenFile: string | undefined, method: string): Promise<Record<string, string>> {
  if (tokenFile === undefined || method !== 'GET') return {};
  const token = await readText(tokenFile, { maxBytes: 64 * 1024, what: 'token file' });
  return { authorization: `Bearer ${token.trim()}` };
}
