import { isRecord } from '../json/is-record.ts';
import { parseLossless, serializeLossless } from '../json/lossless.ts';
import type { Entry, EntryKind } from './entry.ts';

const LISTS: readonly (readonly [EntryKind, string])[] = [
  ['server', 'servers'],
  ['skill', 'skills'],
  ['plugin', 'plugins'],
];

/**
 * Writes entries as a catalogue of the format `registry-file`, with two blanks of indentation. Documents keep their digits
 * and members. `updated` is when the catalogue last changed (RFC 3339), `version` its own.
 */
export function writeRegistryFile(
  entries: readonly Entry[],
  { version, updated }: { readonly version: string; readonly updated: string },
): string {
  const lists = LISTS.map(([kind, list]) => [
    list,
    entries
      .filter((entry) => entry.kind === kind)
      .map(({ json }) => parseLossless(json, { maxBytes: Number.MAX_SAFE_INTEGER })),
  ]).filter(([list, documents]) => list === 'servers' || (documents?.length ?? 0) > 0);
  const file = { version, meta: { last_updated: updated }, data: Object.fromEntries(lists) as unknown };
  return `${serializeLossless(file, 2)}\n`;
}

/** What a catalogue says of itself: its version, and when it last changed; each where it says it. */
export function headerOf(catalogue: unknown): { readonly version?: string; readonly updated?: string } {
  if (!isRecord(catalogue)) return {};
  const { version, last_updated: before, meta } = catalogue;
  const updated = isRecord(meta) ? meta['last_updated'] : before;
  return {
    ...(typeof version === 'string' ? { version } : {}),
    ...(typeof updated === 'string' ? { updated } : {}),
  };
}
