import type { EntryKind, StoredEntry } from '../store/rows.ts';

/** An entry of one version whose description is the text, so that entries of other texts differ. */
export function entryOf(kind: EntryKind, name: string, text: string, claims = ''): StoredEntry {
  const created = '2026-01-01T00:00:00Z';
  const version = {
    version: '1.0.0',
    title: null,
    description: text,
    document: JSON.stringify({ name, description: text }),
    official: null,
    createdAt: created,
    updatedAt: created,
  };
  return { kind, namespace: kind === 'server' ? '' : 'io.acme', name, claims, versions: [version] };
}
