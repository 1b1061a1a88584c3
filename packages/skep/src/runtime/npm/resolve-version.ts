import type { PackageSource } from '../../protocol/reference.ts';
import { chooseVersion, type Packument } from './choose-version.ts';
import { npmSpecifier, packageMissing } from './failure.ts';
import { SHORT, type Upstream } from './upstream.ts';

export interface ResolvedVersion {
  readonly version: string;
  /** The document that says so, for whoever installs it. */
  readonly packument: Packument;
}

/**
 * Asks the registry which exact version a tag, range or bare name means today. Throws `runtime/package-not-found`, or
 * `runtime/prefetch-failed` when the registry does not answer.
 */
export async function resolveVersion(
  upstream: Upstream,
  source: PackageSource,
  signal: AbortSignal,
): Promise<ResolvedVersion> {
  const packument = await upstream.packument(source.name, SHORT, signal);
  const version = chooseVersion(packument, source.version);
  if (version === undefined) throw packageMissing(npmSpecifier(source));
  return { version, packument };
}
