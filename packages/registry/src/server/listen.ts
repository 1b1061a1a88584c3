import type { Server } from 'node:http';
import { createServer } from 'node:net';
import { listen } from '@skep/core/fetch/listen.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ListenAddress } from './serve-addresses.ts';

const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL'];

/** Opens the server and returns its base URL. `flag` is what a message tells people to change. */
export async function listenOn(server: Server, address: ListenAddress, flag: string): Promise<string> {
  const port = await withHost(address, flag, (host) => listen(server, host, address.port));
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

async function withHost<T>(
  { host, port }: ListenAddress,
  flag: string,
  attempt: (host: string) => Promise<T>,
): Promise<T> {
  try {
    if (host !== '') return await attempt(host);
    // Both IP versions, or IPv4 alone on a machine without IPv6.
    return await attempt('::').catch((cause: unknown) => {
      if (!NO_IPV6.includes(errnoOf(cause) ?? '')) throw cause;
      return attempt('0.0.0.0');
    });
  } catch (cause) {
    throw unavailable(`${host}:${port}`, flag, cause);
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
