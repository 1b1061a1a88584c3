import { listFrame } from '@skep/core/catalog/registry-wire.ts';
import type { ListLimits } from './crawl.ts';
import type { ApiItem } from './page.ts';
import { sourceContent, type SourceContent } from '../source.ts';

/** What is known of a registry's list, by key. Deleted items stay until the list is read whole again, to be hidden. */
export type ApiMirror = ReadonlyMap<string, ApiItem>;

/** How far a poll for changes reaches back behind the newest one: a commit may become visible after a later one. */
const OVERLAP_MS = 60_000;
/** A change that lies further ahead than clocks differ is none: asking from there would miss every real one. */
const MAX_AHEAD_MS = 24 * 60 * 60_000;

/** Whether it holds more than a list may. Polls for changes only ever add to it. */
export function exceeds(mirror: ApiMirror, max: ListLimits): boolean {
  if (mirror.size > max.apiSource.maxServers) return true;
  let bytes = 0;
  for (const { json } of mirror.values()) bytes += Buffer.byteLength(json);
  return bytes > max.maxCatalogueSize;
}

/** The mirror with newer items in place of older ones. */
export function merged(mirror: ApiMirror, items: readonly ApiItem[]): ApiMirror {
  return new Map([...mirror, ...items.map((item) => [item.key, item] as const)]);
}

/**
 * RFC 3339 time from which changes have to be asked for, by the registry's own clock; undefined when the list has to be
 * read whole, because it is empty or some item does not say when it changed, or says a time to come. `now` is in
 * milliseconds since the epoch.
 */
export function changesSince(mirror: ApiMirror, now: number): string | undefined {
  let newest: number | undefined;
  for (const { updatedAt } of mirror.values()) {
    if (updatedAt === undefined || updatedAt > now + MAX_AHEAD_MS) return undefined;
    newest = Math.max(newest ?? updatedAt, updatedAt);
  }
  return newest === undefined ? undefined : new Date(newest - OVERLAP_MS).toISOString();
}

/** Documents of skills and plugins. */
export type ApiBundles = Readonly<Record<'skills' | 'plugins', { readonly items: readonly ApiItem[] }>>;

/**
 * The lists as one document of the official shape, each item as it was sent, without the deleted ones. In the order of the
 * keys, so that equal lists have equal hashes however they were gathered.
 */
export function contentOf(mirror: ApiMirror, bundles: ApiBundles): SourceContent {
  const shown = [...mirror.values()].filter((item) => !item.deleted);
  const beside = (['skills', 'plugins'] as const).flatMap((list) =>
    bundles[list].items.length === 0 ? [] : `"${list}":[${joined(bundles[list].items)}],`,
  );
  const open = `{${beside.join('')}${listFrame.open.slice(1)}`;
  return sourceContent(Buffer.from(open + joined(shown) + listFrame.close(shown.length)));
}

function joined(items: readonly ApiItem[]): string {
  const sorted = items.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  return sorted.map(({ json }) => json).join(listFrame.separator);
}
