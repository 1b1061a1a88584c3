import { lstatSync, statSync } from 'node:fs';
import type { EngineClient } from '../client.ts';

/** What an engine reads when a container opens a network; the second in place of one that names systemd-resolved alone. */
const FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];

/**
 * When this machine last changed whom it asks for names, in milliseconds since 1970: what holds a network open since before
 * that has the name servers of then. 0 for an engine elsewhere, whose machine cannot be seen and seldom moves.
 */
export function nameServersSince({ endpoint }: Pick<EngineClient, 'endpoint'>): number {
  if (endpoint.kind !== 'unix') return 0;
  return Math.max(...FILES.map(changedAt));
}

/** A link may lead elsewhere by now, and another file may be older. What cannot be looked at may have changed. */
function changedAt(file: string): number {
  try {
    const seen = [lstatSync, statSync].map((look) => look(file, { throwIfNoEntry: false }));
    return Math.max(...seen.flatMap((one) => (one ? [one.mtimeMs, one.ctimeMs] : [0])));
  } catch {
    return Infinity;
  }
}
