/**
 * Paths and versions as module proxies and checksum databases write them: an upper-case letter is an exclamation mark and
 * the lower-case one ("Go modules reference", module proxy).
 */
export function escapedPath(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => `!${letter.toLowerCase()}`);
}

export function unescapedPath(text: string): string {
  return text.replaceAll(/!([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

/** What may be the path of the module that a package is in, the longest first. */
export function moduleCandidates(packagePath: string): readonly string[] {
  const parts = packagePath.split('/');
  return parts.map((_part, at) => parts.slice(0, parts.length - at).join('/'));
}

/** True for a module that one of the patterns names, or something above it (`go help module-private`). */
export function isNamedBy(patterns: string, modulePath: string): boolean {
  const parts = modulePath.split('/');
  return patterns
    .split(',')
    .map((pattern) => pattern.trim().replace(/\/$/, ''))
    .filter((pattern) => pattern !== '')
    .some((pattern) => {
      const length = pattern.split('/').length;
      return length <= parts.length && globOf(pattern).test(parts.slice(0, length).join('/'));
    });
}

/** `path.Match` of Go: `*` and `?` do not match a slash. */
function globOf(pattern: string): RegExp {
  const text = pattern.replaceAll(/[.+^${}()|\\]/g, String.raw`\$&`).replaceAll('*', '[^/]*').replaceAll('?', '[^/]'); // prettier-ignore
  try {
    return new RegExp(`^${text}$`);
  } catch {
    return /^(?!)/; // of a set that is none; nothing matches it
  }
}
