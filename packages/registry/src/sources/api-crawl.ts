import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Answer } from '@skep/core/fetch/client.ts';
import { type ApiItem, MAX_ITEMS, readPage } from './api-page.ts';
import { conditionsFor, type Validators, validatorsOf } from './validators.ts';

/** A list that fitted on one page, and how to ask whether it is still the same. */
export interface SinglePage {
  readonly url: string;
  readonly validators: Validators;
}

export interface Crawl {
  /** In the order of the pages. */
  readonly items: readonly ApiItem[];
  /** Absent for a list of several pages: that the first one is the same says nothing about the others. */
  readonly single?: SinglePage;
}

/** One GET; `headers` are added to what the caller always sends. */
export type GetPage = (url: string, headers: Readonly<Record<string, string>>) => Promise<Answer>;

export interface CrawlStart {
  readonly url: URL;
  /** The list of the crawl before. */
  readonly known?: SinglePage;
}

const MAX_PAGES = 1_000;
/** Of a whole list. */
export const MAX_BYTES = 100 * 1024 * 1024;

/**
 * Follows the cursors of a list to its end (specification §4.3). Undefined when the server says that the known list is
 * still the same. Fails with `source/endless` for a cursor that comes back and for more than 1,000 pages,
 * `source/too-large` beyond 100,000 servers or 100 MiB, and with what `get` and readPage fail with.
 */
export async function crawl(get: GetPage, { url: first, known }: CrawlStart): Promise<Crawl | undefined> {
  const label = `${first.origin}${first.pathname}`;
  const conditions = known?.url === first.href ? conditionsFor(known.validators) : {};
  const answer = await get(first.href, conditions);
  if (answer.status === 304 && Object.keys(conditions).length > 0) return undefined;
  let page = readAnswer(answer, label);
  if (page.nextCursor === undefined) {
    return { items: page.items, single: { url: first.href, validators: validatorsOf(answer.headers) } };
  }
  const items = [...page.items];
  const seen = new Set<string>();
  let bytes = answer.body.byteLength;
  for (let number = 2; page.nextCursor !== undefined; number += 1) {
    if (number > MAX_PAGES) throw endless(label, `go on after ${String(MAX_PAGES)} of them`);
    if (seen.has(page.nextCursor))
      throw endless(label, `come back to the cursor "${page.nextCursor.slice(0, 100)}"`);
    seen.add(page.nextCursor);
    const next = await get(withCursor(first, page.nextCursor), {});
    page = readAnswer(next, `${label} (page ${String(number)})`);
    bytes += next.body.byteLength;
    for (const item of page.items) items.push(item);
    if (items.length > MAX_ITEMS || bytes > MAX_BYTES) throw tooLarge(label);
  }
  return { items };
}

/** The page of an answer; anything but 200 is none. */
function readAnswer({ status, body }: Answer, label: string): ReturnType<typeof readPage> {
  if (status === 200) return readPage(body, label);
  throw new SkepError('source/bad-answer', {
    message: `"${label}" answered with status ${String(status)} instead of a list`,
    detail: { status },
  });
}

function withCursor(first: URL, cursor: string): string {
  const url = new URL(first);
  url.searchParams.set('cursor', cursor);
  return url.href;
}

function endless(label: string, how: string): SkepError {
  return new SkepError('source/endless', { message: `the pages of "${label}" ${how}` });
}

/** For a list of more than 100,000 servers or 100 MiB. */
export function tooLarge(label: string): SkepError {
  return new SkepError('source/too-large', {
    message: `"${label}" lists more than ${String(MAX_ITEMS)} servers or ${String(MAX_BYTES)} bytes`,
  });
}
