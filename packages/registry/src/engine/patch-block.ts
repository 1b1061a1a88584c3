import type { EntryIdentity, StoredEntry } from '../store/rows.ts';
import { blockOf, EntrySerialiser, type ServedEntry, type SourceBlock } from './block.ts';
import { type ChangedKeys, changedKeys } from './changed-keys.ts';
import type { SortedList } from './sorted-list.ts';

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
  return blockOf(block.source, entries);
}
