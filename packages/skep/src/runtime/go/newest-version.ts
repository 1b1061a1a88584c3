import type { PackageSource } from '../../protocol/reference.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { findLocalModule, localVersion } from './local-module.ts';
import { GoProxies } from './proxies.ts';
import { findGo } from './toolchain.ts';

/** The exact version that a Go package means today, as the person's proxies say, or its directory. */
export async function newestGoVersion(
  environment: RuntimeEnvironment,
  source: PackageSource,
  signal: AbortSignal,
): Promise<string> {
  if (source.directory !== undefined) return localVersion(await findLocalModule(source.directory), signal);
  const { settings } = await findGo(environment);
  using proxies = await GoProxies.open(environment, settings, undefined);
  return proxies.resolve(source, signal);
}
