import { lookup } from 'node:dns/promises';
import { isPublicAddress, type Resolve } from '@skep/core/fetch/address-guard.ts';
import { openRequester, withDeadline } from '@skep/core/fetch/requester.ts';
import { bare, type ForwardProxies } from '@skep/core/fetch/tunnel.ts';
import { createIssuerFetch, type IssuerFetch, type PlainHttp } from '../token/issuer-fetch.ts';

/** Requests of a sign-in: to the resource, to what the operator named, and to what a server named. */
export interface SignInFetch {
  /** For the resource itself, which may be asked in the clear. Errors as `IssuerFetch.fetch`. */
  readonly resource: IssuerFetch['fetch'];
  /** For addresses that the operator gave; private ones too. */
  readonly open: IssuerFetch['fetch'];
  /** For addresses that a server gave; fails with `fetch/refused-address` for private ones. */
  readonly guarded: IssuerFetch['fetch'];
  /** Status and headers of an answer of the resource, whose body nobody waits for. */
  readonly head: (url: URL, request: HeadRequest) => Promise<Head>;
  /** Whether all addresses of the host are private; false where it has none. */
  readonly isPrivate: (url: URL) => Promise<boolean>;
  /** Ends kept connections. Idempotent. */
  readonly close: () => void;
}

interface HeadRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Header names are lower-case. */
export interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface SignInFetchOptions {
  readonly ca?: readonly string[] | undefined;
  readonly proxies?: Partial<ForwardProxies> | undefined;
  readonly resolve?: Resolve | undefined;
  /** Which authorization servers may be asked in the clear; those of this machine by default. */
  readonly plainHttp?: PlainHttp | undefined;
  /** For one request with its answer; 10 s by default. */
  readonly timeoutMs?: number | undefined;
}

const TIMEOUT_MS = 10_000;

/** Answers have at most 1 MiB; no redirect is followed. */
export function createSignInFetch(options: SignInFetchOptions = {}): SignInFetch {
  const { ca, resolve, plainHttp = 'loopback', timeoutMs = TIMEOUT_MS, proxies = {} } = options;
  const given = { ...proxies, ca, resolve, timeoutMs };
  const resource = createIssuerFetch({ ...given, plainHttp: 'any', allowPrivate: true });
  const open = createIssuerFetch({ ...given, plainHttp, allowPrivate: true });
  const guarded = createIssuerFetch({ ...given, plainHttp, allowPrivate: false });
  const probes = openRequester({ ...proxies, ca, resolve, allowPrivate: true });
  const addressesOf = resolve ?? ((host: string) => lookup(host, { all: true }));
  return {
    resource: resource.fetch,
    open: open.fetch,
    guarded: guarded.fetch,
    head: (url, { method, headers, body, signal }) =>
      withDeadline({ url, timeoutMs, signal }, async (inTime) => {
        const sending = { method, body, showTo: () => ({ headers }), signal: inTime };
        const answer = await probes.send(url, { ...sending, redirects: 'answer' });
        answer.drop();
        return { status: answer.status, headers: answer.headers };
      }),
    async isPrivate(url) {
      const found = await addressesOf(bare(url.hostname)).catch(() => []);
      return found.length > 0 && found.every(({ address }) => !isPublicAddress(address));
    },
    close() {
      resource.close();
      open.close();
      probes.close();
      guarded.close();
    },
  };
}
