/**
 * True for a name the npm registry accepts today (npm "package name guidelines"): lower case, URL-safe, at most 214
 * characters, an optional scope, no leading dot or underscore. Such a name can be no flag, path, URL or shell text.
 */
export function isNpmName(name: string): boolean {
  return name.length <= 214 && NPM_NAME.test(name);
}

/**
 * True for an exact version, a range of one token (`^1.2`, `~3`) or a dist-tag. Letters, digits and `.+_~^-` only, as
 * docs/behaviour/run.md#packages asks, and no leading `-`, so it cannot become a flag.
 */
export function isNpmVersion(version: string): boolean {
  return version.length <= 128 && NPM_VERSION.test(version);
}

const NPM_NAME = /^(?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/;
const NPM_VERSION = /^[A-Za-z0-9~^][A-Za-z0-9.+_~^-]*$/;
