import type { EntryIdentity, EntryKind, StoredEntry } from '../store/rows.ts';
import { blockOf, buildBlock, type ServedEntry, type SourceBlock } from './block.ts';
import { compareBytes, lowerBound } from './byte-order.ts';
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
  const fresh = buildBlock(block.source, now).entries;
  const patched = (kind: EntryKind): readonly ServedEntry[] => {
    const keys = new Set(changed.filter((entry) => entry.kind === kind).map((entry) => entryKey(entry)));
    return keys.size === 0 ? block.entries[kind] : merged(block.entries[kind], fresh[kind], keys);
  };
  return blockOf(block.source, {
    server: patched('server'),
    skill: patched('skill'),
    plugin: patched('plugin'),
  });
}

function merged(
  before: readonly ServedEntry[],
  fresh: readonly ServedEntry[],
  changed: ReadonlySet<string>,
): ServedEntry[] {
  const kept = before.filter(({ key }) => !changed.has(key));
  const pieces: (readonly ServedEntry[])[] = [];
  let from = 0;
  for (const entry of fresh) {
    const to = lowerBound(kept, ({ key }) => compareBytes(key, entry.key) < 0);
    pieces.push(kept.slice(from, to), [entry]);
    from = to;
  }
  return [...pieces, kept.slice(from)].flat();
}
