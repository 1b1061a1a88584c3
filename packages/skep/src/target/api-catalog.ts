import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { findServer, newestPerName } from '@skep/core/catalog/find.ts';
import { decodeServerItem, decodeServerPage } from '@skep/core/catalog/registry-wire.ts';
import { statusOf, type Client } from '@skep/core/fetch/client.ts';
import type { CatalogSource } from './catalog-source.ts';

const PAGE = 100;
const MAX_ENTRIES = 10_000;

/** A registry that speaks the MCP Registry API v0.1 at `base` (spec run-workload §2.2). */
export function apiCatalog(base: string, client: Client): CatalogSource {
  const root = base.replace(/\/+$/, '');

  async function list(search: string | undefined, signal: AbortSignal): Promise<readonly ServerEntry[]> {
    const entries: ServerEntry[] = [];
    let cursor: string | undefined;
    do {
      const query = new URLSearchParams({ version: 'latest', limit: String(PAGE) });
      if (search !== undefined) query.set('search', search);
      if (cursor !== undefined) query.set('cursor', cursor);
      const url = `${root}/v0.1/servers?${query.toString()}`;
      const page = decodeServerPage(await client.getJson(url, { signal }), url);
      entries.push(...page.entries);
      // A server that hands out the same cursor again would keep us for ever.
      cursor = page.nextCursor === cursor ? undefined : page.nextCursor;
    } while (cursor !== undefined && entries.length < MAX_ENTRIES);
    return newestPerName(entries);
  }

  async function find(name: string, signal: AbortSignal): Promise<ServerEntry | undefined> {
    const url = `${root}/v0.1/servers/${encodeURIComponent(name)}/versions/latest`;
    try {
      return decodeServerItem(await client.getJson(url, { signal }), url);
    } catch (error) {
      // Only "there is no such server" goes on; an outage must never turn a name into something else.
      if (statusOf(error) !== 404) throw error;
    }
    return findServer(await list(name.split('/').at(-1) ?? name, signal), name);
  }

  async function closing<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } finally {
      await client.close();
    }
  }

  return {
    kind: 'API endpoint',
    location: base,
    find: (name, signal) => closing(() => find(name, signal)),
    list: ({ search, signal }) => closing(() => list(search, signal)),
  };
}
