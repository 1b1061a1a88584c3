import type { RunConfig } from './run-config.ts';

/** What clients connect to. A proxy that listens everywhere is named by its loopback address. */
export function workloadUrl(config: Pick<RunConfig, 'host' | 'port'>): string {
  return `http://${config.host === '0.0.0.0' ? '127.0.0.1' : config.host}:${config.port}/mcp`;
}
