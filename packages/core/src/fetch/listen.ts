import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Server as AnyServer } from 'node:net';
import type { Clock } from '../time/clock.ts';
import type { OpenResponses } from './open-responses.ts';

/** Opens the server and gives back its port; 0 picks a free one. Fails with the system's own error. */
export async function listen(server: AnyServer, host: string, port: number): Promise<number> {
  await once(server.listen({ host, port }), 'listening');
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : port;
}

/** Resolves when the last connection has ended; at once for a server that does not listen. Idle ones end with it. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

const SWEEP_MS = 50;

export interface Draining {
  readonly clock: Clock;
  readonly graceMs: number;
  /** Called when the grace is over and connections are about to be cut. */
  readonly beforeCut?: () => void;
}

/**
 * Stops accepting and waits for requests that run; what still runs when the grace is over is cut off. A
 * connection whose last request was just answered would stay open: idle ones are closed again and again.
 */
export async function drain(server: Server, { clock, graceMs, beforeCut }: Draining): Promise<void> {
  const sweep = clock.every(SWEEP_MS, () => server.closeIdleConnections());
  const cut = clock.after(graceMs, () => {
    beforeCut?.();
    server.closeAllConnections();
  });
  try {
    await closeServer(server);
  } finally {
    sweep.cancel();
    cut.cancel();
  }
}

/** The same for answers on connections of another server, which stay open: waits for them, then cuts what is left. */
export async function drainResponses(
  responses: OpenResponses,
  { clock, graceMs, beforeCut }: Draining,
): Promise<void> {
  const cut = clock.after(graceMs, () => {
    beforeCut?.();
    for (const response of responses) response.destroy();
  });
  try {
    await Promise.all(
      [...responses].map((response) => new Promise((resolve) => response.once('close', resolve))),
    );
  } finally {
    cut.cancel();
  }
}
