import type { ServerEntry } from './entry.ts';
import type { ServerDocument } from './server-json.ts';
import starter from './starter.json' with { type: 'json' };

/**
 * The catalogue that comes with Skep: used when no other registry is set. Written by us, one version per server, and
 * proved by a test to be what reading it as a file gives, so that nobody waits for that.
 */
export function starterServers(): readonly ServerEntry[] {
  const documents: readonly ServerDocument[] = starter.data.servers;
  return documents.map((document) => {
    const { name, version } = document;
    return { kind: 'server', name, version, json: JSON.stringify(document), document };
  });
}
