import type { Peer } from '../port.ts';

/** RFC 5424 severities as MCP names them, most verbose first. */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

export function isLevel(level: unknown): level is string {
  return typeof level === 'string' && LEVELS.includes(level);
}

/** True when a client that wants `wanted` and above should see a message of `level`. Unknown levels are shown. */
export function admits(wanted: string | undefined, level: unknown): boolean {
  if (wanted === undefined || !isLevel(level)) return true;
  return LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
}

/** The most verbose level that any of the peers asked for: what the one server behind them must be set to. */
export function mostVerbose(peers: Iterable<Peer>): string | undefined {
  let lowest = LEVELS.length;
  for (const { logLevel } of peers) {
    if (logLevel !== undefined) lowest = Math.min(lowest, LEVELS.indexOf(logLevel));
  }
  return LEVELS[lowest];
}
