import type { EntryIdentity } from './rows.ts';

/** Only what makes the identity, of something that has more. */
export function identityOf({ kind, namespace, name }: EntryIdentity): EntryIdentity {
  return { kind, namespace, name };
}

/** Equal texts are the same entry within a source. */
export function identityKey({ kind, namespace, name }: EntryIdentity): string {
  return JSON.stringify([kind, namespace, name]);
}
