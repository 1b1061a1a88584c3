import { isIPv4 } from 'node:net';

/** True for addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return (
    host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))
  );
}
