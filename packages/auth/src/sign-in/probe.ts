import { SkepError } from '@skep/core/errors/skep-error.ts';
import { causeText } from '../token/outcome.ts';
import { asksForToken, challengesOf } from './challenge.ts';
import type { SignInServices, SignInTarget } from './port.ts';
import { openReach, parsedUrl } from './reach.ts';
import { findResource } from './resource-metadata.ts';
import type { Head } from './sign-in-fetch.ts';

/** Whether a resource demands a token. */
export type Demand =
  | { readonly kind: 'none' }
  /** It could not be asked. */
  | { readonly kind: 'unknown'; readonly reason: string }
  /** It demands something else, such as `basic`. */
  | { readonly kind: 'other'; readonly schemes: readonly string[] }
  /** `challenge` is its `WWW-Authenticate`. */
  | { readonly kind: 'sign-in'; readonly challenge: string | undefined };

const ACCEPT = 'application/json, text/event-stream';
/** A whole one: servers that look at it first would refuse another, whoever asks. */
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'skep', version: '1' } },
});
const LIST = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} });
/** Of requests that are there, and are not answered. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403]);
const BUDGET_MS = 10_000;
const MAX_REDIRECTS = 5;

/**
 * Asks an MCP server with GET, with `initialize`, and for its tools, because some let everybody begin; the first 401 counts. Some
 * refuse what they are asked before they look for a token: there their metadata counts (decision 0351).
 */
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
    if (got.head.status === 401) return await demandOf(got.head);
    const posted = await ask(got.url, { method: 'POST', body: INITIALIZE }, services);
    if (posted.head.status === 401) return await demandOf(posted.head);
    const listed = await listAt(posted, services);
    if (listed.head.status === 401) return await demandOf(listed.head);
    const isRefused = [posted, listed].every(({ head }) => REFUSALS.has(head.status));
    const target = { resource, mayBePrivate };
    const reach = openReach(target, { fetch: given.fetch, signal });
    const found = isRefused
      ? await findResource(url, undefined, { reach, log: given.log, signal })
      : undefined;
    if (found !== undefined && found.authorizationServers.length > 0)
      return { kind: 'sign-in', challenge: undefined };
  } catch (error) {
    given.signal?.throwIfAborted();
    return { kind: 'unknown', reason: causeText(error) };
  }
  return { kind: 'none' };
}

async function demandOf({ headers }: Head): Promise<Demand> {
  const header = headers['www-authenticate'];
  const challenges = header === undefined ? [] : await challengesOf(header);
  // What cannot be read says no more than none.
  if (challenges.length === 0) return { kind: 'sign-in', challenge: undefined };
  if (challenges.some(asksForToken)) return { kind: 'sign-in', challenge: header };
  return { kind: 'other', schemes: challenges.map(({ scheme }) => scheme) };
}

interface Services extends Pick<SignInServices, 'fetch' | 'signal'> {
  readonly mayBePrivate: boolean;
}

interface Question {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

interface Asked {
  readonly head: Head;
  /** Where it was answered. */
  readonly url: URL;
}

/** Follows redirects to the same host. */
async function ask(
  first: URL,
  { method, body, headers: more }: Question,
  { fetch, ...how }: Services,
): Promise<Asked> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const headers = { accept: ACCEPT, ...type, ...more };
  let url = first;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const head = await fetch.head(url, { method, body, headers, ...how });
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

/** Asks for the tools, in the session that a server that let us in made, which is ended then. */
async function listAt({ head, url }: Asked, services: Services): Promise<Asked> {
  const session = head.headers['mcp-session-id'];
  if (session === undefined) return ask(url, { method: 'POST', body: LIST }, services);
  const headers = { 'mcp-session-id': session };
  try {
    return await ask(url, { method: 'POST', body: LIST, headers }, services);
  } finally {
    await ask(url, { method: 'DELETE', headers }, services).catch(() => undefined);
  }
}
