import type { KeptPage } from '../../engine/kept-pages.ts';
import { listPage, pageKey, type PageQuery, type Reader } from '../../engine/page.ts';
import { bytesTag } from '../entity-tag.ts';
import type { Answer } from '../route.ts';

// A write to a socket costs more than copying a few kilobytes, and a page of many sources has hundreds of pieces.
const MOST_PIECES = 16;

/**
 * A page of a list. Its tag is that of its bytes, and not of the snapshot: a tag that changes when something hidden does
 * would tell of it. Made once per snapshot for all who see the same.
 */
export function listAnswer(reader: Reader, query: PageQuery): Answer {
  const key = pageKey(reader, query);
  let page = reader.pages.get(key);
  if (page === undefined) {
    page = pageOf(listPage(reader, query));
    reader.pages.set(key, page);
  }
  const { etag, pieces } = page;
  return { status: 200, etag, body: () => pieces };
}

function pageOf(made: readonly Buffer[]): KeptPage {
  const pieces = made.length <= MOST_PIECES ? made : [Buffer.concat(made)];
  return { etag: bytesTag(pieces), pieces };
}
