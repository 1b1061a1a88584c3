/**
 * Name rules of catalogue entries. A name becomes a path segment of the registry API and the key that people type, so
 * it never holds spaces, control characters or dot segments.
 */
const SEGMENT = /^[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?$/;
const NAMESPACE = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?$/;
const KEBAB = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;

export const MAX_SERVER_NAME = 200;
export const MAX_VERSION = 255;

/** `{ namespace: 'io.acme', name: 'weather' }` of `io.acme/weather`; a bare name has no namespace. */
export interface SplitName {
  readonly namespace?: string;
  readonly name: string;
}

/** Splits at the last slash, whether or not the name is valid. */
export function splitName(serverName: string): SplitName {
  const slash = serverName.lastIndexOf('/');
  return slash < 0
    ? { name: serverName }
    : { namespace: serverName.slice(0, slash), name: serverName.slice(slash + 1) };
}

/**
 * Why `name` is no server name, or undefined when it is one: `namespace/name` of 3 to 200 characters in the official
 * form, or a bare name of 1 to 200 characters, which the publish endpoint allows.
 */
export function serverNameFault(name: string): string | undefined {
  if (name === '') return 'the name is empty';
  if (name.length > MAX_SERVER_NAME) {
    return `the name has ${name.length} characters, at most ${MAX_SERVER_NAME} are allowed`;
  }
  const slash = name.indexOf('/');
  if (slash < 0)
    return SEGMENT.test(name) ? undefined : 'the name may hold only letters, digits, ".", "_" and "-"';
  if (name.includes('/', slash + 1)) return 'the name has more than one "/"';
  if (!NAMESPACE.test(name.slice(0, slash))) {
    return 'the part before "/" must be letters, digits, "." and "-", beginning and ending with a letter or digit';
  }
  if (!SEGMENT.test(name.slice(slash + 1))) {
    return 'the part after "/" must be letters, digits, ".", "_" and "-", beginning and ending with a letter or digit';
  }
  return undefined;
}

/** Why `name` is no skill or plugin name (1 to 64 lower-case letters, digits and inner hyphens), or undefined. */
export function bundleNameFault(name: string): string | undefined {
  if (name.length > 64) return `the name has ${name.length} characters, at most 64 are allowed`;
  return KEBAB.test(name) ? undefined : 'the name must be lower-case letters, digits and inner hyphens';
}

/** Why `namespace` cannot hold skills or plugins (3 to 128 characters, reverse DNS such as `io.acme`), or undefined. */
export function namespaceFault(namespace: string): string | undefined {
  if (namespace.length < 3 || namespace.length > 128) {
    return `the namespace has ${namespace.length} characters, 3 to 128 are allowed`;
  }
  return NAMESPACE.test(namespace)
    ? undefined
    : 'the namespace must be letters, digits, "." and "-", beginning and ending with a letter or digit';
}

/**
 * Why `version` cannot be a version, or undefined. A version is a path segment of the API, so what no path can carry is
 * none: white space and control characters of any script, dot segments, which clients and proxies collapse however they are
 * escaped, and half a surrogate pair. `latest` is refused because the API gives that word a meaning of its own: a version
 * of that name could never be asked for.
 */
export function versionFault(version: string): string | undefined {
  if (version === '') return 'the version is empty';
  if (version.length > MAX_VERSION) {
    return `the version has ${version.length} characters, at most ${MAX_VERSION} are allowed`;
  }
  if (version === 'latest') return 'the version must not be the word "latest"';
  if (version === '.' || version === '..') return 'the version must not be "." or ".."';
  return /[\s\p{Cc}\p{Cs}]/u.test(version)
    ? 'the version holds white space or a control character'
    : undefined;
}

/** Comparators at the start, alternatives, and wildcards in the place of a number: what package managers call a range. */
const RANGE = /^[\^~<>=]|\|\||(?:^|\.)[xX*](?:$|[.+-])/;

/**
 * Why nothing can be published under `version`, or undefined (docs/behaviour/registry.md#publishing). A range would be
 * stored as one version that nobody can install.
 */
export function publishedVersionFault(version: string): string | undefined {
  const fault = versionFault(version);
  if (fault !== undefined) return fault;
  return RANGE.test(version)
    ? `the version must be one version, not the range ${JSON.stringify(version)}`
    : undefined;
}
