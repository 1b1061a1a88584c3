import { hash } from 'node:crypto';
import { filterKey } from '../sources/filter/filter.ts';
import { decodeSource } from '../sources/open-source.ts';
import type { StoredSource } from '../store/rows.ts';
import type { Limits } from '../shape/limits.ts';

/** Changes whenever equal bytes would be ingested differently, so that an upgrade reads every source again. */
const INGEST_REVISION = 4;

/** What the entries of a source are made from: how it is read, and the bytes. */
export interface ContentKey {
  /** Of everything that decides about the result but the bytes: place, format, filter. */
  readonly settings: string;
  readonly filter: string | null;
}

export function contentKey(source: StoredSource, limits: Limits): ContentKey {
  const { maxInvalidShare, maxDocumentSize: document, maxDescriptionSize: description } = limits;
  const { filter } = decodeSource(source);
  const key = filter === undefined ? null : filterKey(filter);
  const { kind, config, format } = source;
  return {
    settings: digest(
      JSON.stringify([
        INGEST_REVISION,
        kind,
        config,
        format,
        key,
        maxInvalidShare,
        { document, description },
      ]),
    ),
    filter: key === null ? null : digest(key),
  };
}

/** One text for both, from which the hash of the bytes can be told again. */
export function contentHash({ settings }: ContentKey, bytes: string): string {
  return `${settings}:${bytes}`;
}

/** The hash of the bytes that the store's entries were made from, if they were made with these settings. */
export function knownBytes({ settings }: ContentKey, stored: string | null): string | undefined {
  return stored?.startsWith(`${settings}:`) === true ? stored.slice(settings.length + 1) : undefined;
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22);
}
