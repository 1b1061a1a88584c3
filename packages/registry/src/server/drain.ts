import type { Server } from 'node:http';
import type { Clock } from '@skep/core/time/clock.ts';

/** What requests that run may take; longer than any request may take by the other limits. */
const DRAIN_MS = 30_000;
const SWEEP_MS = 50;

/**
 * Stops accepting and waits for requests that run; what still runs at the end of the time is cut off. A connection whose
 * last request has just been answered would stay open for the next, so idle ones are closed again and again.
 */
export async function drain(server: Server, clock: Clock): Promise<void> {
  const cut = clock.after(DRAIN_MS, () => server.closeAllConnections());
  let cancelSweep = (): void => {};
  const sweep = (): void => {
    server.closeIdleConnections();
    cancelSweep = clock.after(SWEEP_MS, sweep).cancel;
  };
  sweep();
  try {
    await closeServer(server);
  } finally {
    cut.cancel();
    cancelSweep();
  }
}

/** Resolves when the last connection has ended; at once for a server that does not listen. Idle ones end with it. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
