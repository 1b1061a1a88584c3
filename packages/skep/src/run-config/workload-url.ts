import type { RunConfig } from './run-config.ts';

/** What clients connect to. A proxy that listens everywhere is named by its loopback address. */
export function workloadUrl({
  name,
  host,
  port,
  proxy_mode: mode,
}: Pick<RunConfig, 'name' | 'host' | 'port' | 'proxy_mode'>): string {
  // Clients of the older transport show what follows the number sign.
  const path = mode === 'sse' ? `/sse#${name}` : '/mcp';
  return `http://${host === '0.0.0.0' ? '127.0.0.1' : host}:${port}${path}`;
}
