import type { PackageSource } from '../../protocol/reference.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { Upstream } from './upstream.ts';

/** The exact version that an npm package means today, as the person's registry says; undefined for other packages. */
export async function newestVersion(
  environment: RuntimeEnvironment,
  source: PackageSource,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (source.ecosystem !== 'npm') return undefined;
  using upstream = await Upstream.open(environment, undefined);
  return (await upstream.resolve(source, signal)).version;
}
