import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import type { Context } from '../cli/context.ts';
import type { OpenedRuntime } from '../cli/open-runtime.ts';
import { loadAppConfig } from '../config/app-config.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Prepared, PrepareRequest, Report, Source } from '../runtime/runtime.ts';
import { checkPackageSource } from '../protocol/reference.ts';

export interface SavedPreparation {
  readonly opened: OpenedRuntime;
  readonly context: Context;
  readonly report: Report;
}

/** Pulls, builds or fetches what a run configuration describes, the way it says. */
export async function prepareSaved(config: RunConfig, preparation: SavedPreparation): Promise<Prepared> {
  const { opened, context, report } = preparation;
  const { builder_image: baseImage, additional_packages: addPackages } = config.runtime_config ?? {};
  return opened.runtime.prepare({
    source: sourceOf(config),
    ...(baseImage === undefined ? {} : { baseImage }),
    addPackages: addPackages ?? [],
    ...(await caOf(context)),
    report,
    signal: context.signal,
  });
}

function sourceOf(config: RunConfig): Source {
  return config.package ? checkPackageSource(config.package) : { kind: 'image', reference: config.image };
}

async function caOf(context: Context): Promise<Pick<PrepareRequest, 'caCert'>> {
  const config = await loadAppConfig(context.places);
  const path = config.caCertificatePath ?? context.env['NODE_EXTRA_CA_CERTS'];
  return path === undefined ? {} : { caCert: async () => (await readCaBundle(path)).join('\n') };
}
