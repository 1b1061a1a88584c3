import { createHash } from 'node:crypto';
import type { EntryKind } from '../store/rows.ts';

type Entries = Readonly<Record<EntryKind, Iterable<{ readonly digest: string }>>>;

/** SHA-256 over the digests of all entries, in their order. */
export function digestOfEntries(entries: Entries): string {
  const all = createHash('sha256');
  for (const [kind, list] of Object.entries(entries)) {
    for (const { digest } of list) all.update(`${kind} ${digest}\n`);
  }
  return all.digest('hex');
}
