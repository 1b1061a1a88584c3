import { isIP } from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Step } from '../chain.ts';
import { refuse } from '../endpoint/refuse.ts';

export interface OriginSettings {
  /** The address the proxy listens on. */
  readonly bindHost: string;
  readonly port: number;
  /** Instead of the loopback origins. */
  readonly allowedOrigins: readonly string[] | undefined;
  readonly trustProxyHeaders: boolean;
}

const METHODS = 'GET, POST, DELETE, OPTIONS';
const REQUEST_HEADERS =
  'Content-Type, Accept, Authorization, Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID, Mcp-Method, Mcp-Name';
const EXPOSED_HEADERS = 'Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version';
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** True for addresses that only this machine can reach. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));

/** What the guard lets in; `undefined` means that it does not look (spec run-proxy §1.2.4). */
export interface Allowed {
  readonly origins: ReadonlySet<string> | undefined;
  readonly hosts: ReadonlySet<string> | undefined;
}

/** Allow-lists from the settings: those given, else the loopback names when listening on loopback, else none. */
export function allowedBy(settings: OriginSettings): Allowed {
  const loopback = isLoopback(settings.bindHost);
  const given = settings.allowedOrigins?.map((origin) => origin.toLowerCase());
  const local = loopback ? [...new Set([...LOOPBACK_NAMES, bracketed(settings.bindHost)])] : [];
  const origins = given ?? (loopback ? local.map((name) => `http://${name}:${settings.port}`) : undefined);
  if (!loopback && given === undefined) return { origins: undefined, hosts: undefined };
  const hosts = local.flatMap((name) => [name, `${name}:${settings.port}`]);
  const mayUseGiven = !loopback || settings.trustProxyHeaders;
  const givenHosts = mayUseGiven ? (given ?? []).map((origin) => origin.replace(/^[^/]*:\/\//u, '')) : [];
  return { origins: new Set(origins), hosts: new Set([...hosts, ...givenHosts]) };
}

const bracketed = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host.toLowerCase());

/** Refuses foreign Host and Origin headers (DNS rebinding) and answers CORS preflights, on every route. */
export function origin(settings: OriginSettings): Step {
  const allowed = allowedBy(settings);
  return async (call, next) => {
    const { req, res } = call;
    if (allowed.hosts !== undefined && !allowed.hosts.has(req.headers.host?.toLowerCase() ?? '')) {
      refuse(res, 'proxy/host-refused');
      return;
    }
    const from = req.headers.origin;
    const known = from !== undefined && allowed.origins?.has(from.toLowerCase()) === true;
    if (from !== undefined && allowed.origins !== undefined && !known) {
      refuse(res, 'proxy/origin-refused');
      return;
    }
    if (req.method === 'OPTIONS') {
      if (known) preflight(req, res, from);
      else refuse(res, 'proxy/method-not-allowed', { headers: { Allow: METHODS.replace(', OPTIONS', '') } });
      return;
    }
    if (known) admit(res, from);
    await next();
  };
}

const admit = (res: ServerResponse, from: string): void => {
  res.setHeader('Access-Control-Allow-Origin', from);
  res.setHeader('Vary', 'Origin');
  res.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
};

const preflight = (req: IncomingMessage, res: ServerResponse, from: string): void => {
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
};
