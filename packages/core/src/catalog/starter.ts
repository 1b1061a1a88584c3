import type { ServerEntry } from './entry.ts';
import { readCatalogue } from './registry-file.ts';
import starter from './starter.json' with { type: 'json' };

/** The catalogue that comes with Skep: used when no other registry is set. Written by us, one version per server. */
export function starterServers(): readonly ServerEntry[] {
  const { entries } = readCatalogue(starterText(), { label: 'built-in catalogue', maxInvalidShare: 0 });
  return entries.flatMap((entry) => (entry.kind === 'server' ? [entry] : []));
}

/** The same catalogue as the text of a registry file, for a registry that serves it or a person who starts from it. */
export function starterText(): string {
  return JSON.stringify(starter, null, 2);
}
