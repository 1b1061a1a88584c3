import { SkepError } from '@skep/core/errors/skep-error.ts';

/**
 * Proxies collapse `/../`, `/./` and their escaped forms, so a path that holds one could be another path to them than
 * to us; none is answered (specification §2.2.1). `url` is the request target as it was sent.
 */
export function hasDotSegment(url: string): boolean {
  return /(?:^|\/)(?:\.|%2e){1,2}(?=\/|$)/i.test(pathOf(url));
}

/** Why the router could not read a request target: a broken escape, or a segment longer than any parameter; always 400. */
export function unreadablePath(url: string, cause: unknown): SkepError {
  const broken = pathOf(url)
    .split('/')
    .find((segment) => decoded(segment) === undefined);
  const message =
    broken === undefined
      ? 'a path segment is too long'
      : `invalid URL encoding in path segment "${broken.slice(0, 100)}"`;
  return new SkepError('registry/bad-request', { message, cause });
}

function pathOf(url: string): string {
  return url.split(/[?#]/, 1)[0] ?? '';
}

/** Undefined where an escape is broken. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
