import type { EntryIdentity, EntryKind } from '../store/rows.ts';
import { entryKey } from './kinds.ts';

/** Keys under which something is different now, or gone. */
export type ChangedKeys = Readonly<Record<EntryKind, ReadonlySet<string>>>;

export function changedKeys(changed: readonly EntryIdentity[]): ChangedKeys {
  const ofKind = (kind: EntryKind): Set<string> =>
    new Set(changed.flatMap((entry) => (entry.kind === kind ? entryKey(entry) : [])));
  return { server: ofKind('server'), skill: ofKind('skill'), plugin: ofKind('plugin') };
}
