import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Connection, Page } from '../../engine/kept-pages.ts';
import { listPage, pageKey, versionPage, type PageQuery, type Reader } from '../../engine/page.ts';
import type { Answer } from '../route/route.ts';

/**
 * A page of a list. Its tag says what is in it, and nothing of the snapshot: a tag that changes when something hidden does
 * would tell of it.
 */
export function listAnswer(reader: Reader, query: PageQuery, caller: Connection): Answer | Promise<Answer> {
  const key = pageKey(reader, query);
  const page = reader.pages.page(key, caller, (isWanted) => listPage(reader, query, isWanted));
  return page instanceof Promise ? page.then(pageAnswer) : pageAnswer(page);
}

/** One version of an entry, or `registry/not-found`: what the caller may not see does not exist. */
export function versionAnswer(reader: Reader, key: string, version: string): Answer {
  const page = versionPage(reader, key, version);
  if (page === undefined) throw new SkepError('registry/not-found');
  return pageAnswer(page);
}

export function pageAnswer({ etag, pieces }: Page): Answer {
  return { status: 200, etag, body: () => pieces };
}
