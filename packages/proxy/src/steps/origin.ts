import { isIP } from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isMetadataPath } from '@skep/auth/resource/metadata.ts';
import type { Code } from '@skep/core/errors/codes.ts';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { refuse } from '../call/refuse.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';

export interface OriginSettings {
  /** The address the proxy listens on. */
  readonly bindHost: string;
  readonly port: number;
  /** Origins beside the proxy's own; clients may name their hosts. */
  readonly allowedOrigins: readonly string[];
  /** Several servers answer there: a page that one of them made has the origin of all, so it may call none. */
  readonly isShared?: boolean;
}

const METHODS = 'GET, POST, DELETE, OPTIONS';
const REQUEST_HEADERS =
  'Content-Type, Accept, Authorization, Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID, Mcp-Method, Mcp-Name';
const EXPOSED_HEADERS = 'Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version';
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

const DONE = Promise.resolve();

interface Allowed {
  host(host: string): boolean;
  /** `host` is the one that the request itself names. */
  origin(origin: string, host: string): boolean;
  /** A page of this relation to what it asks for (Fetch Metadata), where no origin is named. */
  site(site: string | undefined): boolean;
}

/**
 * Who may call. A web page reaches a proxy by a name that it lets point there (DNS rebinding), or across origins; it
 * cannot choose what an IP address or `localhost` means, so by these, the proxy's own name and what was listed, clients
 * may call, and pages of these origins with the proxy's own port. On loopback every name is known; beyond it any address
 * may be the machine's.
 */
function allowedBy({ bindHost, port, allowedOrigins, isShared = false }: OriginSettings): Allowed {
  const loopback = isLoopback(bindHost);
  const given = allowedOrigins.map((origin) => origin.toLowerCase());
  const names = [...new Set([...LOOPBACK_NAMES, withBrackets(bindHost)])];
  const givenHosts = given.map((origin) => origin.replace(/^[^/]*:\/\//u, ''));
  const hosts = new Set([
    ...names.flatMap((name) => [name, `${name}:${port}`]),
    ...givenHosts.flatMap((host) => [host, host.replace(/:\d{1,5}$/u, '')]),
  ]);
  const own = isShared ? [] : names.map((name) => `http://${name}:${port}`);
  const origins = new Set([...given, ...own]);
  const foreign = ['cross-site', 'same-site', ...(isShared ? ['same-origin'] : [])];
  return {
    host: (host) => hosts.has(host.toLowerCase()) || (!loopback && isAddress(host)),
    origin(origin, host) {
      const from = origin.toLowerCase();
      return (
        origins.has(from) ||
        (!loopback && isAddress(host) && from === `http://${host}` && host.endsWith(`:${port}`))
      );
    },
    site: (site) => site === undefined || !foreign.includes(site),
  };
}

function withBrackets(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host.toLowerCase();
}

/** An IP literal, with any port: a tunnel or an engine may publish the proxy's under another number. */
function isAddress(host: string): boolean {
  const bare = host.replace(/:\d{1,5}$/u, '');
  return isIP(bare) === 4 || (/^\[.*\]$/u.test(bare) && isIP(bare.slice(1, -1)) === 6);
}

/** Refuses foreign Host and Origin headers (DNS rebinding) and answers CORS preflights, on every route. */
export function origin(settings: OriginSettings): Step {
  const allowed = allowedBy(settings);
  return (call, next) => {
    const { req, res } = call;
    const refusal = refusalOf(call, allowed);
    if (refusal !== undefined) {
      refuse(res, refusal);
      return DONE;
    }
    const from = req.headers.origin;
    // Everybody may read where to sign in, so whoever answers that says so itself.
    if (req.method === 'OPTIONS' && !isMetadataPath(call.path)) {
      if (from === undefined)
        refuse(res, 'proxy/method-not-allowed', { headers: { Allow: METHODS.replace(', OPTIONS', '') } });
      else preflight(req, res, from);
      return DONE;
    }
    if (from !== undefined) admit(res, from);
    return next();
  };
}

function refusalOf(call: Call, allowed: Allowed): Code | undefined {
  const { req, authority } = call;
  if (countOfHosts(req) > 1) return 'proxy/host-ambiguous';
  if (!isForUs(call, allowed)) return 'proxy/host-refused';
  const from = req.headers.origin;
  // Browsers send no `Origin` with a GET whose answer the page will not see, but name its site.
  const isOurs =
    from === undefined
      ? allowed.site(req.headers['sec-fetch-site'])
      : allowed.origin(from, authority ?? req.headers.host ?? '');
  return isOurs ? undefined : 'proxy/origin-refused';
}

/** The target's own host counts where there is one (RFC 9112 §3.2.2), but a Host header must not say otherwise. */
function isForUs({ req, authority }: Call, allowed: Allowed): boolean {
  return allowed.host(req.headers.host ?? '') && (authority === undefined || allowed.host(authority));
}

/** Node keeps the first of several; RFC 9112 §3.2 wants such a request refused. */
function countOfHosts({ rawHeaders }: IncomingMessage): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

function admit(res: ServerResponse, from: string): void {
  res.setHeader('Access-Control-Allow-Origin', from);
  res.setHeader('Vary', 'Origin');
  res.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
}

function preflight(req: IncomingMessage, res: ServerResponse, from: string): void {
  const asked = req.headers['access-control-request-headers'] ?? '';
  const parameters = asked
    .split(',')
    .map((name) => name.trim())
    .filter((name) => /^mcp-param-[a-z0-9_-]+$/iu.test(name));
  res
    .writeHead(204, {
      'Access-Control-Allow-Origin': from,
      Vary: 'Origin',
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Allow-Headers': [REQUEST_HEADERS, ...parameters].join(', '),
      'Access-Control-Max-Age': '86400',
    })
    .end();
}
