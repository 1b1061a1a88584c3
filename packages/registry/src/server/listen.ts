import type { Server } from 'node:http';
import { createServer, type Server as AnyServer } from 'node:net';
import { errnoOf } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { ListenAddress } from './serve-addresses.ts';

// Of an empty host: both IP versions, or IPv4 alone on a machine without IPv6.
const EVERY_INTERFACE = ['::', '0.0.0.0'];

/** Opens the server and returns its base URL. `flag` is what a message tells people to change. */
export async function listenOn(server: Server, address: ListenAddress, flag: string): Promise<string> {
  await withHost(address, flag, (host) => listen(server, host, address.port));
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : address.port;
  return `http://${urlHost(address.host)}:${port}`;
}

/** Fails as listening would, before anything costly is done. */
export async function assertFree(address: ListenAddress, flag: string): Promise<void> {
  if (address.port === 0) return;
  await withHost(address, flag, async (host) => {
    const probe = createServer();
    await listen(probe, host, address.port);
    await new Promise((closed) => probe.close(closed));
  });
}

function listen(server: AnyServer, host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen({ host, port }, () => {
    server.off('error', reject);
    resolve();
  });
  return promise;
}

async function withHost(
  { host, port }: ListenAddress,
  flag: string,
  attempt: (host: string) => Promise<unknown>,
): Promise<void> {
  const hosts = host === '' ? EVERY_INTERFACE : [host];
  for (const [index, candidate] of hosts.entries()) {
    try {
      await attempt(candidate);
      return;
    } catch (cause) {
      const code = errnoOf(cause);
      const noIpv6 = code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL';
      if (noIpv6 && index + 1 < hosts.length) continue;
      throw unavailable(`${host}:${port}`, flag, cause);
    }
  }
}

function unavailable(address: string, flag: string, cause: unknown): SkepError {
  const code = errnoOf(cause);
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: 'it is in use',
    EACCES: 'it needs more rights',
    EADDRNOTAVAIL: 'this machine has no such address',
  };
  return new SkepError('registry/address-unavailable', {
    message: `cannot listen on "${address}": ${reasons[code ?? ''] ?? String(code)}`,
    hint: `choose another address with ${flag}`,
    cause,
  });
}

/** A host that a browser on this machine can open. */
function urlHost(host: string): string {
  if (host === '') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

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
