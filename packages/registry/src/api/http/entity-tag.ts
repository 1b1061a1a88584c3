/** The strong entity tag of an answer with this digest: equal digests promise equal bytes. */
export function digestTag(digest: string): string {
  return `"${digest}"`;
}

/** Whether If-None-Match names the tag; by weak comparison, as RFC 9110 §13.1.2 asks. */
export function noneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
