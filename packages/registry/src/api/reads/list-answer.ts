import { SkepError } from '@skep/core/errors/skep-error.ts';
import { Callers, type KeptPage, type Connection } from '../../engine/kept-pages.ts';
import {
  entryOf,
  listPage,
  pageKey,
  versionPage,
  type Page,
  type PageQuery,
  type Reader,
} from '../../engine/page.ts';
import type { Answer } from '../route/route.ts';

// A write to a socket costs more than copying a few kilobytes, and a page of many sources has hundreds of pieces.
const MAX_PIECES = 16;

/**
 * A page of a list. Its tag says what is in it, and nothing of the snapshot: a tag that changes when something hidden does
 * would tell of it. Made once for all who see the same, also while it is being made, and for as long as one of them waits.
 */
export function listAnswer(reader: Reader, query: PageQuery, caller: Connection): Answer | Promise<Answer> {
  const { pages } = reader;
  const key = pageKey(reader, query);
  const kept = pages.get(key);
  if (kept !== undefined) return keptAnswer(kept);
  const making = pages.making(key);
  if (making !== undefined) {
    making.callers.add(caller);
    return making.page.then(keptAnswer);
  }
  const callers = new Callers(caller);
  const made = listPage(reader, query, callers.areWaiting);
  if (made instanceof Promise) {
    return pages.make(key, { page: made.then(keptPage), callers }).then(keptAnswer);
  }
  const page = keptPage(made);
  pages.set(key, page);
  return keptAnswer(page);
}

/** One version of an entry, or `registry/not-found`: what the caller may not see does not exist. */
export function versionAnswer(reader: Reader, key: string, version: string): Answer {
  const entry = entryOf(reader, key);
  const page = entry === undefined ? undefined : versionPage(entry, version);
  if (page === undefined) throw new SkepError('registry/not-found');
  return pageAnswer(page);
}

/** An answer of this page alone, which is kept by nobody. */
export function pageAnswer({ pieces, digest }: Page): Answer {
  return { status: 200, etag: digestTag(digest), body: () => pieces };
}

function keptAnswer({ etag, pieces }: KeptPage): Answer {
  return { status: 200, etag, body: () => pieces };
}

function keptPage({ pieces, digest }: Page): KeptPage {
  const etag = digestTag(digest);
  return { etag, pieces: pieces.length <= MAX_PIECES ? pieces : [Buffer.concat(pieces)] };
}

/** The strong entity tag of an answer with this digest: equal digests promise equal bytes. */
function digestTag(digest: string): string {
  return `"${digest}"`;
}
