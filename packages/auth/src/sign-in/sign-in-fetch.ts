import { lookup } from 'node:dns/promises';
import { isPublicAddress } from '@skep/core/fetch/address-class.ts';
import type { Resolve } from '@skep/core/fetch/address-guard.ts';
import { openRequester, withDeadline } from '@skep/core/fetch/requester.ts';
import { bare, type ForwardProxies } from '@skep/core/fetch/tunnel.ts';
import {
  createIssuerFetch,
  type IssuerFetch,
  type IssuerFetchOptions,
  type PlainHttp,
} from '../token/issuer-fetch.ts';

/** Requests of a sign-in: to the resource, to what the operator named, and to what a server named. */
export interface SignInFetch {
  /** For the resource itself, which may be asked in the clear. Errors as `IssuerFetch.fetch`. */
  readonly resource: Guarding;
  /** For all others. */
  readonly other: Guarding;
  /** Status and headers of an answer of the resource, whose body nobody waits for. Guarded as `resource`. */
  readonly head: (url: URL, request: HeadRequest) => Promise<Head>;
  /** Whether an address of the host is private; false where it has none. */
  readonly isPrivate: (url: URL) => Promise<boolean>;
  /** Ends kept connections. Idempotent. */
  readonly close: () => void;
}

/** `guarded` fails with `fetch/refused-address` for addresses that are not public, `open` asks them too. */
export type Guarding = Readonly<Record<'open' | 'guarded', IssuerFetch['fetch']>>;

interface HeadRequest {
  readonly mayBePrivate: boolean;
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
  const resource = guarding({ ...proxies, ca, resolve, timeoutMs, plainHttp: 'any' });
  const other = guarding({ ...proxies, ca, resolve, timeoutMs, plainHttp });
  const open = openRequester({ ...proxies, ca, resolve, allowPrivate: true });
  const guarded = openRequester({ ...proxies, ca, resolve, allowPrivate: false });
  const addressesOf = resolve ?? ((host: string) => lookup(host, { all: true }));
  return {
    resource,
    other,
    head: (url, { method, headers, body, signal, mayBePrivate }) =>
      withDeadline({ url, timeoutMs, signal }, async (inTime) => {
        const sending = { method, body, showTo: () => ({ headers }), signal: inTime };
        const answer = await (mayBePrivate ? open : guarded).send(url, { ...sending, redirects: 'answer' });
        answer.drop();
        return { status: answer.status, headers: answer.headers };
      }),
    async isPrivate(url) {
      const found = await addressesOf(bare(url.hostname)).catch(() => []);
      return found.some(({ address }) => !isPublicAddress(address));
    },
    close() {
      for (const one of [resource, other, open, guarded]) one.close();
    },
  };
}

function guarding(options: Omit<IssuerFetchOptions, 'allowPrivate'>): Guarding & { close: () => void } {
  const open = createIssuerFetch({ ...options, allowPrivate: true });
  const guarded = createIssuerFetch({ ...options, allowPrivate: false });
  return {
    open: open.fetch,
    guarded: guarded.fetch,
    close() {
      open.close();
      guarded.close();
    },
  };
}
