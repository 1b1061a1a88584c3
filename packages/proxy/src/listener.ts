import { createServer, type Server } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { listen } from '@skep/core/fetch/listen.ts';
import { errnoOf } from '@skep/core/files/errno.ts';

const HEADERS_WITHIN_MS = 10_000;
const REQUEST_WITHIN_MS = 30_000;
const IDLE_MS = 120_000;
const CHECK_EVERY_MS = 2_000;
/** Each open stream is one; more than this are closed at once. */
const MAX_CONNECTIONS = 10_000;
const TCP_PROBE_AFTER_MS = 30_000;

/**
 * An HTTP server with the time limits of docs/behaviour/proxy.md#the-listener: slow senders are cut off, streams may
 * last for ever.
 */
export function httpServer(): Server {
  const server = createServer({
    headersTimeout: HEADERS_WITHIN_MS,
    requestTimeout: REQUEST_WITHIN_MS,
    keepAliveTimeout: IDLE_MS,
    connectionsCheckingInterval: CHECK_EVERY_MS,
    // A vanished client would otherwise keep its GET stream open for ever.
    keepAlive: true,
    keepAliveInitialDelay: TCP_PROBE_AFTER_MS,
    noDelay: true,
  });
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

/** Resolves with the port; rejects with `proxy/port-busy` or `proxy/listen-failed`. Port 0 picks a free one. */
export async function listenOn(server: Server, host: string, port: number): Promise<number> {
  try {
    return await listen(server, host.replace(/^\[|\]$/gu, ''), port);
  } catch (cause) {
    const where = `"${port}" on "${host}"`;
    const code = errnoOf(cause) ?? 'unknown';
    throw code === 'EADDRINUSE'
      ? new SkepError('proxy/port-busy', { message: `port ${where} is not available`, cause })
      : new SkepError('proxy/listen-failed', { message: `cannot listen on port ${where}: ${code}`, cause });
  }
}
