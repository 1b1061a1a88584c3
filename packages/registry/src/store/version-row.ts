import type { VersionWrite } from './diff.ts';
import type { EntryVersionTable } from './tables.ts';

export function versionRow(source: string, { content, ...row }: VersionWrite): EntryVersionTable {
  return {
    source,
    kind: row.kind,
    namespace: row.namespace,
    name: row.name,
    version: content.version,
    title: storable(content.title),
    description: storable(content.description),
    document: content.document,
    official: content.official,
    digest: row.digest,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  };
}

/**
 * PostgreSQL text cannot hold U+0000. Title and description are copies to search in; the document, where the character is
 * written as an escape, keeps it.
 */
function storable(text: string | null): string | null {
  return text?.replaceAll('\0', '\u{FFFD}') ?? null;
}
