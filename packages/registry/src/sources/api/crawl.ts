import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Answer } from '@skep/core/fetch/client.ts';
import type { Limits } from '../../shape/limits.ts';
import { readPage, type ApiItem, type ListName } from './page.ts';
import { conditionsAfter, isUnchanged, type Conditions } from '../open-client.ts';

/** Items that a page is asked for; as text, for the query. */
export const PAGE_SIZE = '100';

/** A list that fitted on one page, and how to ask whether it is still the same. */
export interface SinglePage {
  readonly url: string;
  readonly conditions: Conditions;
}

export interface Crawl {
  /** In the order of the pages. */
  readonly items: readonly ApiItem[];
  /** Absent for a list of several pages: that the first one is the same says nothing about the others. */
  readonly single?: SinglePage;
}

/** One GET; `headers` are added to what the caller always sends. */
export type GetPage = (url: string, headers: Conditions) => Promise<Answer>;

export interface CrawlStart {
  readonly url: URL;
  /** Default `servers`. */
  readonly list?: ListName;
  /** The list of the crawl before. */
  readonly known?: SinglePage | undefined;
  readonly limits: ListLimits;
}

/** What a whole list may have; no page may hold more servers either. */
export type ListLimits = Pick<Limits, 'apiSource' | 'maxCatalogueSize'>;

/**
 * Follows the cursors of a list to its end (docs/behaviour/registry.md#fetching). Undefined when the server says that
 * the known list is still the same. Fails with `source/endless` for a cursor that comes back and for more pages than
 * the limits allow, `source/too-large` for more servers or bytes, and with what `get` and readPage fail with.
 */
export async function crawl(get: GetPage, start: CrawlStart): Promise<Crawl | undefined> {
  const { url: first, known, limits, list = 'servers' } = start;
  const { maxPages, maxServers } = limits.apiSource;
  const label = `${first.origin}${first.pathname}`;
  const items: ApiItem[] = [];
  const seen = new Set<string>();
  let bytes = 0;
  let conditions = known?.url === first.href ? known.conditions : {};
  for (let url = first, number = 1; ; number += 1) {
    if (number > maxPages) throw endless(label, `go on after ${maxPages} of them`);
    const answer = await get(url.href, conditions);
    if (isUnchanged(answer, conditions)) return undefined;
    conditions = {};
    const place = number === 1 ? label : `${label} (page ${number})`;
    const { status, body } = answer;
    if (status !== 200) {
      const message = `"${place}" answered with status ${status} instead of a list`;
      throw new SkepError('source/bad-answer', { message, detail: { status } });
    }
    const page = readPage(body, { label: place, maxServers, list });
    bytes += body.byteLength;
    for (const item of page.items) items.push(item);
    if (items.length > maxServers || bytes > limits.maxCatalogueSize) throw tooLarge(label, limits);
    const cursor = page.nextCursor;
    if (cursor === undefined) {
      return number > 1
        ? { items }
        : { items, single: { url: url.href, conditions: conditionsAfter(answer) } };
    }
    if (seen.has(cursor)) throw endless(label, `come back to the cursor "${cursor.slice(0, 100)}"`);
    seen.add(cursor);
    url = withParameter(first, 'cursor', cursor);
  }
}

export function withParameter(address: URL, name: string, value: string): URL {
  const url = new URL(address);
  url.searchParams.set(name, value);
  return url;
}

function endless(label: string, how: string): SkepError {
  return new SkepError('source/endless', { message: `the pages of "${label}" ${how}` });
}

/** For a list of more servers or bytes than it may have. */
export function tooLarge(label: string, { apiSource, maxCatalogueSize }: ListLimits): SkepError {
  return new SkepError('source/too-large', {
    message: `"${label}" lists more than ${apiSource.maxServers} servers or ${maxCatalogueSize} bytes`,
  });
}
