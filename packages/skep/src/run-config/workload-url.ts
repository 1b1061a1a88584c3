import type { RunConfig } from './run-config.ts';

/**
 * What clients connect to: for a server elsewhere the path that it has there. A proxy that listens everywhere is named by its
 * loopback address.
 */
export function workloadUrl({
  name,
  host,
  port,
  proxy_mode: mode,
  remote_url: elsewhere,
}: Pick<RunConfig, 'name' | 'host' | 'port' | 'proxy_mode' | 'remote_url'>): string {
  const there = elsewhere === undefined ? '/' : (URL.parse(elsewhere)?.pathname ?? '/');
  const isSse = mode === 'sse';
  const own = isSse ? '/sse' : elsewhere === undefined ? '/mcp' : '/';
  // Clients of the older transport show what follows the number sign.
  const path = `${there === '/' ? own : there}${isSse ? `#${name}` : ''}`;
  return `http://${SOMEWHERE.get(host) ?? (host.includes(':') ? `[${host}]` : host)}:${port}${path}`;
}

/** Addresses that stand for all of a machine, and what it calls itself. */
const SOMEWHERE: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '[::1]'],
]);
