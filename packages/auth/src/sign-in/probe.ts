import { SkepError } from '@skep/core/errors/skep-error.ts';
import { causeText } from '../token/outcome.ts';
import type { SignInServices, SignInTarget } from './port.ts';
import { parsedUrl } from './reach.ts';
import type { Head } from './sign-in-fetch.ts';

/** Whether a resource demands a token. */
export type Demand =
  /** It does not, or it could not be asked. */
  | { readonly kind: 'none' }
  /** `challenge` is its `WWW-Authenticate`. */
  | { readonly kind: 'sign-in'; readonly challenge: string | undefined };

const ACCEPT = 'application/json, text/event-stream';
const INITIALIZE = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} });
const BUDGET_MS = 10_000;
const MAX_REDIRECTS = 5;

/** Asks an MCP server with GET, then with `initialize`; the first 401 counts. What goes wrong is logged, and demands nothing. */
export async function probe(
  { resource, mayBePrivate }: Pick<SignInTarget, 'resource' | 'mayBePrivate'>,
  given: Pick<SignInServices, 'fetch' | 'log' | 'signal'>,
): Promise<Demand> {
  const budget = AbortSignal.timeout(BUDGET_MS);
  const signal = given.signal === undefined ? budget : AbortSignal.any([given.signal, budget]);
  const services = { fetch: given.fetch, signal, mayBePrivate: mayBePrivate?.resource ?? false };
  try {
    const url = parsedUrl(resource);
    const got = await ask(url, { method: 'GET' }, services);
    if (got.head.status === 401) return demandOf(got.head);
    const posted = await ask(got.url, { method: 'POST', body: INITIALIZE }, services);
    if (posted.head.status === 401) return demandOf(posted.head);
    await endSession(posted.url, posted.head, services);
  } catch (error) {
    given.signal?.throwIfAborted();
    given.log.warn({ reason: causeText(error) }, 'cannot tell whether the server demands a sign-in');
  }
  return { kind: 'none' };
}

function demandOf({ headers }: Head): Demand {
  return { kind: 'sign-in', challenge: headers['www-authenticate'] };
}

interface Services extends Pick<SignInServices, 'fetch' | 'signal'> {
  readonly mayBePrivate: boolean;
}

/** Follows redirects to the same host. */
async function ask(
  first: URL,
  request: { readonly method: 'GET' | 'POST'; readonly body?: string },
  { fetch, ...how }: Services,
): Promise<{ readonly head: Head; readonly url: URL }> {
  const type = request.body === undefined ? {} : { 'content-type': 'application/json' };
  let url = first;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const head = await fetch.head(url, { ...request, headers: { accept: ACCEPT, ...type }, ...how });
    const next = head.status > 300 && head.status < 400 ? locationOf(head, url) : undefined;
    if (next === undefined) return { head, url };
    url = next;
  }
  throw new SkepError('fetch/bad-status', { message: 'the server redirects too often' });
}

function locationOf({ headers }: Head, from: URL): URL | undefined {
  const next = headers['location'] === undefined ? null : URL.parse(headers['location'], from.href);
  if (next === null) return undefined;
  if (next.host === from.host && next.protocol === from.protocol) return next;
  throw new SkepError('fetch/bad-status', { message: 'the server redirects to another host' });
}

/** A server that let us in made a session for it. */
async function endSession(url: URL, { headers }: Head, { fetch, ...how }: Services): Promise<void> {
  const session = headers['mcp-session-id'];
  if (session === undefined) return;
  await fetch.head(url, { method: 'DELETE', headers: { 'mcp-session-id': session }, ...how });
}
