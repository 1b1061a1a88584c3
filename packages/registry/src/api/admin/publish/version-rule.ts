import { versionFault } from '@skep/core/catalog/entry-name.ts';

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
