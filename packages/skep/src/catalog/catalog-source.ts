import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { findServer, newestPerName } from '@skep/core/catalog/find.ts';

/** Where server entries are looked up. All failures are SkepErrors; "not there" is not a failure. */
export interface CatalogSource {
  readonly kind: 'built-in' | 'local file' | 'remote file' | 'API endpoint';
  /** Path or address; empty for the built-in one. */
  readonly location: string;
  /** The newest version of what `name` means; undefined only when the catalogue definitely does not have it. */
  find(name: string, signal: AbortSignal): Promise<ServerEntry | undefined>;
  /** The newest version of every server; of a large catalogue, at least of those that a search may mean. */
  list(options: { readonly search?: string; readonly signal: AbortSignal }): Promise<readonly ServerEntry[]>;
}

/** A catalogue that is read whole: the built-in one and files. */
export function wholeCatalog(
  about: Pick<CatalogSource, 'kind' | 'location'>,
  load: (signal: AbortSignal) => Promise<readonly ServerEntry[]>,
): CatalogSource {
  let loaded: Promise<readonly ServerEntry[]> | undefined;
  const entries = (signal: AbortSignal): Promise<readonly ServerEntry[]> => (loaded ??= load(signal));
  return {
    ...about,
    async find(name, signal) {
      return findServer(await entries(signal), name);
    },
    async list({ signal }) {
      return newestPerName(await entries(signal));
    },
  };
}
