import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { EntryIdentity, EntryKind } from '../store/rows.ts';

/** Sorts below every character of a namespace, so that comparing keys compares namespace first and then name. */
const BETWEEN = '\u0000';

/** What entries of one kind are ordered and found by: equal keys are the same entry. */
export function entryKey({ namespace, name }: Pick<EntryIdentity, 'namespace' | 'name'>): string {
  return namespace === '' ? name : `${namespace}${BETWEEN}${name}`;
}

/** The key as cursors and searches show it: `namespace/name`. */
export function shownKey(key: string): string {
  return key.replace(BETWEEN, '/');
}

/** The key that is shown like this. A server's namespace is part of its name, a bundle's stands before the last slash. */
export function keyOfShown(kind: EntryKind, shown: string): string {
  if (kind === 'server') return shown;
  const slash = shown.lastIndexOf('/');
  return slash < 0 ? shown : entryKey({ namespace: shown.slice(0, slash), name: shown.slice(slash + 1) });
}

/** The last item of the page before: the next page starts strictly after this name and version. */
export interface Position {
  readonly name: string;
  readonly version: string;
}

const ALPHABET = /^[A-Za-z0-9+/_-]+={0,2}$/;
const MAX_CHARS = 4096;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Base64url of `name,version`, without padding so that clients may paste it into a URL as it is. */
export function encodeCursor(position: Position): string {
  return Buffer.from(`${position.name},${position.version}`).toString('base64url');
}

/**
 * Reads our cursors and those of other servers of this API, which use the standard base64 alphabet with padding; a
 * `+` that a client forgot to escape arrives as a space. A name holds no comma, so the first one ends it.
 * @throws SkepError `registry/bad-request` for anything else.
 */
export function decodeCursor(text: string): Position {
  const encoded = text.replaceAll(' ', '+');
  if (encoded.length > MAX_CHARS || !ALPHABET.test(encoded)) throw invalidCursor();
  let decoded: string;
  try {
    decoded = utf8.decode(Buffer.from(encoded, 'base64'));
  } catch (cause) {
    throw invalidCursor(cause);
  }
  const comma = decoded.indexOf(',');
  if (comma <= 0) throw invalidCursor();
  return { name: decoded.slice(0, comma), version: decoded.slice(comma + 1) };
}

const invalidCursor = (cause?: unknown): SkepError =>
  new SkepError('registry/bad-request', {
    message: 'invalid cursor',
    hint: 'pass metadata.nextCursor of the page before, unchanged',
    cause,
  });
