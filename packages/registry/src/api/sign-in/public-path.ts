/** Paths that never need a token: where clients learn how to sign in and what there is to call. */
const BUILT_IN = ['/openapi.json', '/.well-known'];

/**
 * Whether a request target lies under one of the paths that need no token (docs/behaviour/registry.md#public-paths):
 * equal, or below by whole segments. `url` is the target as it was sent, never a normalised one, and one that holds an
 * escaped slash or dot is under none, because a proxy may read another path in it than we do.
 */
export function isPublicPath(url: string, publicPaths: readonly string[]): boolean {
  const path = url.split('?', 1)[0] ?? '';
  if (/%2f|%2e/i.test(path)) return false;
  return [...BUILT_IN, ...publicPaths].some((prefix) => isUnder(path, prefix));
}

function isUnder(path: string, prefix: string): boolean {
  if (prefix === '/') return true;
  return path === prefix || (path.startsWith(prefix) && path[prefix.length] === '/');
}
