import type { EntryIdentity, StoredEntry, EntryKind } from '../store/rows.ts';
import { EntrySerialiser, type ServedEntry, type SourceBlock } from './block.ts';
import type { SortedList } from './sorted-list.ts';
import { entryKey } from './kinds.ts';

/**
 * The block with some entries as they are now, which of `changed` may be fewer: the others are gone. What did not change
 * stays where it lies, so that a publish costs little however much the source holds.
 */
export function patchBlock(
  block: SourceBlock,
  changed: readonly EntryIdentity[],
  now: readonly StoredEntry[],
): SourceBlock {
  // Each in bytes of its own: a chunk would live as long as the longest-lived of the entries that share it.
  const serialiser = new EntrySerialiser(0);
  for (const entry of now) serialiser.add(entry);
  const fresh = serialiser.entries();
  const keys = changedKeys(changed);
  const patched = (kind: keyof ChangedKeys): SortedList<ServedEntry> => {
    const changes = new Map<string, ServedEntry | undefined>();
    for (const key of keys[kind]) changes.set(key, undefined);
    for (const entry of fresh[kind]) changes.set(entry.key, entry);
    return block.entries[kind].with(changes);
  };
  const entries = { server: patched('server'), skill: patched('skill'), plugin: patched('plugin') };
  return { source: block.source, entries };
}

/** Keys under which something is different now, or gone. */
export type ChangedKeys = Readonly<Record<EntryKind, ReadonlySet<string>>>;

export function changedKeys(changed: readonly EntryIdentity[]): ChangedKeys {
  const ofKind = (kind: EntryKind): Set<string> =>
    new Set(changed.flatMap((entry) => (entry.kind === kind ? entryKey(entry) : [])));
  return { server: ofKind('server'), skill: ofKind('skill'), plugin: ofKind('plugin') };
}
