import { isIPv4 } from 'node:net';

/** Whether a host, as a name, an address or part of a URL, is this machine and reached by no other. */
export function isLoopback(host: string): boolean {
  return (
    host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))
  );
}
