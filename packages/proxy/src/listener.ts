import { createServer, type Server } from 'node:http';
import type { Clock } from '@skep/core/time/clock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

const HEADERS_WITHIN_MS = 10_000;
const REQUEST_WITHIN_MS = 30_000;
const IDLE_MS = 120_000;
const CHECK_EVERY_MS = 2_000;
/** Each open stream is one; more than this are closed at once. */
const MAX_CONNECTIONS = 10_000;
/** A connection that finished its last answer becomes idle only after `close` was called. */
const TIDY_EVERY_MS = 50;
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
export function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const where = `"${port}" on "${host}"`;
      const busy = error.code === 'EADDRINUSE';
      reject(
        new SkepError(busy ? 'proxy/port-busy' : 'proxy/listen-failed', {
          message: busy
            ? `port ${where} is not available`
            : `cannot listen on port ${where}: ${error.code ?? 'unknown'}`,
          cause: error,
        }),
      );
    };
    server.once('error', failed);
    server.listen({ host: host.replace(/^\[|\]$/gu, ''), port }, () => {
      server.off('error', failed);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

export interface Closing {
  readonly clock: Clock;
  readonly graceMs: number;
  /** Called when the grace is over and connections are about to be cut. */
  beforeCut(): void;
}

/** Stops accepting and waits until connections are done, at most `graceMs`; then cuts what is left. */
export async function closeServer(server: Server, closing: Closing): Promise<void> {
  const { clock, graceMs } = closing;
  const tidy = clock.every(TIDY_EVERY_MS, () => server.closeIdleConnections());
  const cut = clock.after(graceMs, () => {
    closing.beforeCut();
    server.closeAllConnections();
  });
  try {
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeIdleConnections();
    });
  } finally {
    tidy.cancel();
    cut.cancel();
  }
}
