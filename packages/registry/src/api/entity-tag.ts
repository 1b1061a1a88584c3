import { createHash, hash } from 'node:crypto';

/** The strong entity tag of an answer that is at hand, in pieces. */
export function bytesTag(pieces: readonly Buffer[]): string {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) return `"${hash('sha256', only, 'base64url')}"`;
  const digest = createHash('sha256');
  for (const piece of pieces) digest.update(piece);
  return `"${digest.digest('base64url')}"`;
}

/** Whether If-None-Match names the tag; by weak comparison, as RFC 9110 §13.1.2 asks. */
export function noneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
