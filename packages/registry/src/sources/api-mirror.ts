import { hash } from 'node:crypto';
import { listFrame } from '@skep/core/catalog/registry-wire.ts';
import type { ApiItem } from './api-page.ts';
import type { SourceContent } from './source.ts';

/** What is known of a registry's list, by key. Deleted items stay until the next full look, to be hidden. */
export type ApiMirror = ReadonlyMap<string, ApiItem>;

/** How far a look for changes reaches back behind the newest one: a commit may become visible after a later one. */
const OVERLAP_MS = 60_000;

/** The mirror with newer items in place of older ones. */
export function merged(mirror: ApiMirror, items: readonly ApiItem[]): ApiMirror {
  return new Map([...mirror, ...items.map((item) => [item.key, item] as const)]);
}

/**
 * RFC 3339 time from which changes have to be asked for, by the registry's own clock; undefined when the list has to be
 * read whole, because it is empty or some item does not say when it changed.
 */
export function changesSince(mirror: ApiMirror): string | undefined {
  let newest: number | undefined;
  for (const { updatedAt } of mirror.values()) {
    if (updatedAt === undefined) return undefined;
    newest = Math.max(newest ?? updatedAt, updatedAt);
  }
  return newest === undefined ? undefined : new Date(newest - OVERLAP_MS).toISOString();
}

/**
 * The list as one document of the official shape, each item byte for byte as it was sent, without the deleted ones. In
 * the order of the keys, so that equal lists have equal hashes however they were gathered.
 */
export function contentOf(mirror: ApiMirror): SourceContent {
  const shown = [...mirror.values()].filter((item) => !item.deleted);
  shown.sort((a, b) => (a.key < b.key ? -1 : 1));
  const list = shown.map(({ json }) => json).join(listFrame.separator);
  const bytes = Buffer.from(listFrame.open + list + listFrame.close(shown.length));
  return { bytes, hash: hash('sha256', bytes) };
}
