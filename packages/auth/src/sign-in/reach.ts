import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { shownUrl } from '@skep/core/fetch/requester.ts';
import { withPlainNames } from '@skep/core/json/scan.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { IssuerRequest } from '../token/issuer-fetch.ts';
import type { SignInServices, SignInTarget } from './port.ts';

/** The addresses that one sign-in may ask, and how carefully. */
export interface Reach {
  /** The endpoints may have private addresses. */
  readonly mayBePrivate: boolean;
  /** Redirects are not followed. Errors as `IssuerFetch.fetch`. */
  readonly send: (url: string, request?: IssuerRequest) => Promise<Response>;
  /** A document; follows redirects to the same host. Fails with `auth/bad-metadata` for any other. */
  readonly read: (url: string) => Promise<Response>;
  /** For the functions of oauth4webapi. */
  readonly options: OAuthOptions;
}

/** `allowInsecureRequests` only says that our own fetch decides which plain addresses are asked. */
export interface OAuthOptions {
  readonly [oauth.customFetch]: (url: string, options: RequestOptions) => Promise<Response>;
  readonly [oauth.allowInsecureRequests]: true;
}

type RequestOptions = oauth.CustomFetchOptions<string, URLSearchParams | string | undefined>;

const MAX_REDIRECTS = 10;

/**
 * Private addresses are asked only where `mayBePrivate` of the target says so (decision 0380): those of the resource, or all that an
 * issuer of the operator's choice names. `known` is what an earlier sign-in kept of that.
 */
export function openReach(
  target: SignInTarget,
  { fetch, signal }: Pick<SignInServices, 'fetch' | 'signal'>,
  known?: boolean,
): Reach {
  const { resource, issuer, authorizeUrl, tokenUrl, assertion } = target;
  const may = known === undefined ? target.mayBePrivate : { resource: known, issuer: known };
  const named = [issuer, authorizeUrl, tokenUrl].filter((one) => one !== undefined).map(originOf);
  const own = originOf(resource);
  const mayBePrivate = may?.resource === true || (may?.issuer === true && named.length > 0);
  // Nobody but the operator names who vouches for the caller.
  const vouches = assertion?.kind === 'identity' ? originOf(assertion.tokenUrl) : undefined;
  const send: Reach['send'] = async (url, request = {}) => {
    const origin = originOf(url);
    const isOpen = origin === own && !named.includes(own) ? may?.resource === true : mayBePrivate;
    const asking = origin === own ? fetch.resource : fetch.other;
    const chosen = isOpen || origin === vouches ? asking.open : asking.guarded;
    return chosen(url, { ...request, signal: request.signal ?? signal });
  };
  return { mayBePrivate, send, read: (url) => readFollowing(url, send), options: optionsFor(send) };
}

function originOf(text: string): string {
  return parsedUrl(text).origin;
}

/** Fails with `fetch/invalid-url`. */
export function parsedUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/u.test(url.protocol))
    throw new SkepError('fetch/invalid-url', { message: `"${text.slice(0, 200)}" is no http or https URL` });
  return url;
}

/** Letters of an address that a server names. */
const MAX_ADDRESS = 8_192;
const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Whether an address is longer than any is that is meant to be asked. */
export function isEndless(address: string): boolean {
  return address.length > MAX_ADDRESS;
}

/**
 * A page that a server names for a person to visit: other schemes start programs, what is typed into a page in the clear is
 * read by others, and a login before the host looks like one. Fails with `auth/bad-metadata`.
 */
export function pageAt(text: string, { mayBePrivate }: Pick<Reach, 'mayBePrivate'>): URL {
  const url = URL.parse(text);
  const isHere = url !== null && LOOPBACK.has(url.hostname);
  const isPlain = url !== null && url.username + url.password === '' && !isEndless(text);
  if (isPlain && (url.protocol === 'https:' || (url.protocol === 'http:' && (isHere || mayBePrivate))))
    return url;
  const message = `the server sends people to "${printable(text.slice(0, 200))}", which is no https page, holds a login, or is very long`;
  throw new SkepError('auth/bad-metadata', { message });
}

async function readFollowing(first: string, send: Reach['send']): Promise<Response> {
  let url = parsedUrl(first);
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const answer = await send(url.href, { headers: { accept: 'application/json' } });
    const location = answer.headers.get('location');
    if (answer.status < 300 || answer.status > 399 || location === null) return plain(answer);
    const next = URL.parse(location, url.href);
    const isSame = next?.host === url.host && (next.protocol === url.protocol || next.protocol === 'https:');
    if (next === null || !isSame)
      throw new SkepError('auth/bad-metadata', { message: `"${shownUrl(url)}" redirects to another host` });
    url = next;
  }
  throw new SkepError('auth/bad-metadata', { message: `"${first}" redirects too often` });
}

/** A document whose members every parser finds under the same names (`parseJson`). */
export async function plain(answer: Response): Promise<Response> {
  const text = await answer.text();
  const { status, headers } = answer;
  return new Response(text === '' ? null : plainText(text), { status, headers });
}

function plainText(text: string): string {
  try {
    return withPlainNames(text);
  } catch {
    return text;
  }
}

function optionsFor(send: Reach['send']): OAuthOptions {
  return {
    [oauth.allowInsecureRequests]: true,
    [oauth.customFetch]: async (url, { method, headers, body }) => {
      const request = { method: method === 'POST' ? 'POST' : 'GET', headers, body } as const;
      return plain(await send(url, request));
    },
  };
}
