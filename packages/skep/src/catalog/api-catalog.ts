import { serverNameFault } from '@skep/core/catalog/entry-name.ts';
import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { findServer, newestPerName } from '@skep/core/catalog/find.ts';
import { decodeServerItem, decodeServerPage } from '@skep/core/catalog/registry-wire.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { statusOf, type Client } from '@skep/core/fetch/client.ts';
import { explainedRefusal } from '../account/refusal.ts';
import type { CatalogSource } from './catalog-source.ts';

const PAGE = 100;
const MAX_ENTRIES = 10_000;
/** Registries may give less at once than they are asked for, and none says that it has no end. */
const MAX_PAGES = 1000;
/** Servers that are looked through for one whose name was mistyped. */
const MAX_GUESSED = 2000;

/** A registry that speaks the MCP Registry API v0.1 at `base` (docs/behaviour/run.md#catalogues). */
export function apiCatalog(base: string, client: Client): CatalogSource {
  const root = base.replace(/\/+$/, '');

  async function list(
    search: string | undefined,
    signal: AbortSignal,
    limit = MAX_ENTRIES,
  ): Promise<readonly ServerEntry[]> {
    const entries: ServerEntry[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const query = new URLSearchParams({ version: 'latest', limit: String(PAGE) });
      if (search !== undefined) query.set('search', search);
      if (cursor !== undefined) query.set('cursor', cursor);
      const url = `${root}/v0.1/servers?${query.toString()}`;
      const page = decodeServerPage(await client.getJson(url, { signal }), url);
      entries.push(...page.entries);
      pages += 1;
      // A server that hands out the same cursor again would keep us for ever.
      cursor = page.nextCursor === cursor ? undefined : page.nextCursor;
    } while (cursor !== undefined && entries.length < limit && pages < MAX_PAGES);
    return newestPerName(entries);
  }

  /** Only "there is no such server" goes on; an outage must never turn a name into something else. */
  async function find(name: string, signal: AbortSignal): Promise<ServerEntry | undefined> {
    // No registry holds what cannot be a name, so none is asked for an image with a tag or a host.
    if (serverNameFault(name) !== undefined) return undefined;
    const full = name.includes('/');
    const url = `${root}/v0.1/servers/${encodeURIComponent(name)}/versions/latest`;
    try {
      return decodeServerItem(await client.getJson(url, { signal }), url);
    } catch (error) {
      // Many registries know full names only and call any other a bad request.
      if (statusOf(error) !== 404 && (full || !isComplaint(error))) throw error;
    }
    try {
      return findServer(await list(name.split('/').at(-1) ?? name, signal), name);
    } catch (error) {
      if (!isComplaint(error)) throw error;
      // The term is what the registry does not like; that it has no server of a full name is known already.
      if (full) return undefined;
      throw new SkepError('target/not-found', {
        message: `"${name}" is not the full name of a server, and the registry does not search for it: ${error.message}`,
        hint: 'give the full name, like io.example/name',
        cause: error,
      });
    }
  }

  async function closing<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      throw explainedRefusal(error, root, 'nothing');
    } finally {
      await client.close();
    }
  }

  return {
    kind: 'API endpoint',
    location: base,
    find: (name, signal) => closing(() => find(name, signal)),
    list: ({ search, signal }) =>
      closing(() => (search === undefined ? list(undefined, signal) : candidates(search, list, signal))),
  };
}

type List = (
  search: string | undefined,
  signal: AbortSignal,
  limit?: number,
) => Promise<readonly ServerEntry[]>;

/**
 * What a search may mean: registries look for one text as it is written, so they are asked for the longest word, and for a
 * part of everything where none has that.
 */
async function candidates(query: string, list: List, signal: AbortSignal): Promise<readonly ServerEntry[]> {
  const words = query.split(/\s+/).filter((word) => word !== '');
  const [term] = words.toSorted((a, b) => b.length - a.length);
  if (term === undefined) return list(undefined, signal);
  try {
    const found = await list(term, signal);
    if (found.length > 0) return found;
  } catch (error) {
    if (!isComplaint(error)) throw error;
  }
  return list(undefined, signal, MAX_GUESSED);
}

/** The registry understood, and does not take what it was asked for. */
function isComplaint(error: unknown): error is SkepError {
  return statusOf(error) === 400 || statusOf(error) === 422;
}
