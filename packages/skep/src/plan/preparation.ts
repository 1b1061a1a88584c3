import { resolve } from 'node:path';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { loadAppConfig, type AppConfig } from '../config/app-config.ts';
import { checkPackageSource } from '../protocol/reference.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Preparation, Surroundings } from './plan.ts';

/** The certificate authorities that always hold for downloads. Parsing them takes a while, so they are read when asked for. */
export function trustedAlways(
  { caCertificatePath }: Pick<AppConfig, 'caCertificatePath'>,
  { cwd, env }: Pick<Surroundings, 'cwd' | 'env'>,
): Pick<Preparation, 'caCert'> {
  const path = caCertificatePath ?? env['NODE_EXTRA_CA_CERTS'];
  if (path === undefined) return {};
  return { caCert: async () => (await readCaBundle(resolve(cwd, path))).join('\n') };
}

/** How what a run configuration describes is pulled, built or fetched: the way it says. */
export async function preparationOf(
  config: RunConfig,
  around: Pick<Surroundings, 'places' | 'cwd' | 'env'>,
): Promise<Preparation> {
  const { builder_image: baseImage, additional_packages: addPackages = [] } = config.runtime_config ?? {};
  return {
    source: config.package ? checkPackageSource(config.package) : { kind: 'image', reference: config.image },
    ...(baseImage === undefined ? {} : { baseImage }),
    addPackages,
    ...trustedAlways(await loadAppConfig(around.places), around),
  };
}
