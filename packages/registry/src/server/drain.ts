import type { FastifyInstance } from 'fastify';
import type { Clock } from '@skep/core/time/clock.ts';

/** What requests that run may take (specification §6.5); longer than any request may take by the other limits. */
const DRAIN_MS = 30_000;
const SWEEP_MS = 50;

/**
 * Stops accepting and waits for requests that run; what still runs at the end of the time is cut off. A connection whose
 * last request has just been answered would stay open for the next, so idle ones are closed again and again.
 */
export async function drained(server: FastifyInstance, clock: Clock): Promise<void> {
  const cut = clock.after(DRAIN_MS, () => server.server.closeAllConnections());
  let cancelSweep = (): void => {};
  const sweep = (): void => {
    server.server.closeIdleConnections();
    cancelSweep = clock.after(SWEEP_MS, sweep).cancel;
  };
  sweep();
  try {
    await server.close();
  } finally {
    cut.cancel();
    cancelSweep();
  }
}
