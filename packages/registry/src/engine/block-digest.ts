import { hash } from 'node:crypto';
import type { EntryKind } from '../store/rows.ts';

/** What of an entry counts. */
interface Digested {
  /** See partOf. */
  readonly part: number;
  readonly digest: string;
}

type Entries = Readonly<Record<EntryKind, readonly Digested[]>>;

/** Every entry belongs to one of so many parts, so that a change makes one part be digested again and not everything. */
const PARTS = 1024;

/** The part of a key, the same on every replica (FNV-1a over its UTF-16 units). */
export function partOf(key: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < key.length; at += 1) sum = Math.imul(sum ^ key.charCodeAt(at), 0x01000193);
  return (sum >>> 0) % PARTS;
}

/** Digests of all parts; the empty text where a part has no entry. */
export function partDigests(entries: Entries): readonly string[] {
  return changedParts(entries, Array<string>(PARTS).fill(''), new Uint8Array(PARTS).fill(1));
}

/** The digests after entries of these keys changed, were added or left out. */
export function patchedDigests(
  before: readonly string[],
  entries: Entries,
  keys: Iterable<string>,
): readonly string[] {
  const touched = new Uint8Array(PARTS);
  for (const key of keys) touched[partOf(key)] = 1;
  return changedParts(entries, before, touched);
}

export function digestOfParts(parts: readonly string[]): string {
  return hash('sha256', parts.join('\n'));
}

function changedParts(entries: Entries, before: readonly string[], touched: Uint8Array): readonly string[] {
  const texts = new Map<number, string>();
  for (const [kind, list] of Object.entries(entries)) {
    for (const { part, digest } of list) {
      if (touched[part] === 1) texts.set(part, `${texts.get(part) ?? ''}${kind} ${digest}\n`);
    }
  }
  return before.map((digest, part) => {
    if (touched[part] !== 1) return digest;
    const text = texts.get(part);
    return text === undefined ? '' : hash('sha256', text, 'base64url');
  });
}
