import { isMetadataPath, type ResourceMetadata } from '@skep/auth/resource/metadata.ts';
import type { ServerResponse } from 'node:http';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Health } from '../backend/backend.ts';
import { refuse } from '../call/refuse.ts';

/** Paths answered beside the chain, behind the origin guard only (docs/behaviour/proxy.md#paths-beside-the-chain). */
export function isAside(path: string): boolean {
  return (
    path === '/health' || path === '/metrics' || path === '/.well-known' || path.startsWith('/.well-known/')
  );
}

interface Asides {
  readonly health: () => Health;
  /** What RFC 9728 says of the endpoint; undefined where nobody has to sign in. */
  readonly metadata: (call: Call) => ResourceMetadata | undefined;
  /** All metrics in the Prometheus text format; undefined where nobody may have them. */
  readonly scrape: (() => Promise<string>) | undefined;
  readonly clock: Clock;
}

/** Prometheus exposition formats, text format 0.0.4. */
const PROMETHEUS = 'text/plain; version=0.0.4; charset=utf-8';

/** Answers the paths of `isAside`. */
export function asides({ health, metadata, scrape, clock }: Asides): Step {
  return async (call) => {
    const { req, res, path } = call;
    if (isMetadataPath(path)) answerMetadata(call, metadata(call));
    else if (path === '/metrics') await answerMetrics(call, scrape);
    else if (path !== '/health') sendJson(res, 404, { error: 'not_found' });
    else if (req.method === 'GET') sendHealth(res, health(), new Date(clock.now()).toISOString());
    else refuse(res, 'proxy/method-not-allowed', { headers: { Allow: 'GET' } });
  };
}

async function answerMetrics({ req, res }: Call, scrape: Asides['scrape']): Promise<void> {
  if (scrape === undefined) refuse(res, 'proxy/no-route');
  else if (req.method !== 'GET') refuse(res, 'proxy/method-not-allowed', { headers: { Allow: 'GET' } });
  else res.writeHead(200, { 'Content-Type': PROMETHEUS }).end(await scrape());
}

/** Clients in browsers read it before they sign in, with the headers that they send everywhere. */
const METADATA_CORS = {
  'Access-Control-Allow-Methods': 'GET, OPTIONS',
  'Access-Control-Allow-Headers': 'mcp-protocol-version, Content-Type, Authorization',
  'Access-Control-Max-Age': '86400',
};

function answerMetadata({ req, res }: Call, document: ResourceMetadata | undefined): void {
  // That of a page that may call is set by then.
  if (req.headers.origin === undefined) res.setHeader('Access-Control-Allow-Origin', '*');
  if (req.method === 'OPTIONS') res.writeHead(204, METADATA_CORS).end();
  else if (document === undefined) sendJson(res, 404, { error: 'not_found' });
  else if (req.method === 'GET' || req.method === 'HEAD') sendJson(res, 200, document);
  else refuse(res, 'proxy/method-not-allowed', { headers: { Allow: 'GET, HEAD, OPTIONS' } });
}

function sendHealth(res: ServerResponse, health: Health, now: string): void {
  const { status, mcpAvailable, transport, seen } = health;
  const looked = seen && {
    response_time_ms: seen.tookMs,
    ...(seen.error === undefined ? {} : { error: seen.error }),
    last_checked: new Date(seen.at).toISOString(),
  };
  const mcp =
    mcpAvailable === undefined ? {} : { mcp: { available: mcpAvailable, last_checked: now, ...looked } };
  const about = { status, timestamp: now, transport, ...mcp };
  sendJson(res, status === 'unhealthy' ? 503 : 200, about);
}

function sendJson(res: ServerResponse, status: number, value: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}
