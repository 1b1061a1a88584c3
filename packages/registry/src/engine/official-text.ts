import type { Entry } from '@skep/core/catalog/entry.ts';
import { extensionStatus } from '@skep/core/catalog/extension-summary.ts';

/**
 * What is known of a version beside its document, as the store keeps it: the official block of the registry it came
 * from. Where that does not say a status, the publisher's own word counts (docs/behaviour/registry.md#consumer-api).
 * Null when nothing is known.
 */
export function officialText(entry: Entry): string | null {
  if (entry.kind !== 'server') return null;
  const { official, document } = entry;
  const isDeprecated = !official?.status && extensionStatus(document) === 'deprecated';
  if (!isDeprecated) return official === undefined ? null : JSON.stringify(official);
  return JSON.stringify({ ...official, status: 'deprecated' });
}
