import { resolve } from 'node:path';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { checkPackageSource } from '../protocol/reference.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime, Source } from '../runtime/runtime.ts';
import { buildSettings } from '../settings/build.ts';
import type { RunValues } from '../settings/run-settings.ts';
import type { Preparation } from './plan.ts';

type BuildConfig = Exclude<RunConfig['runtime_config'], undefined>;

/** How a source is pulled, built or fetched. Parsing authorities takes a while, so they are read when asked for. */
export function preparationOf(
  source: Source,
  { builder_image: baseImage, additional_packages: addPackages = [] }: BuildConfig,
  settings: Settings,
  cwd: string,
): Preparation {
  const { caCert: path } = valuesOf(buildSettings, settings);
  return {
    source,
    ...(baseImage === undefined ? {} : { baseImage }),
    addPackages,
    ...(path && { caCert: async () => (await readCaBundle(resolve(cwd, path))).join('\n') }),
  };
}

/** What a run configuration runs from. */
export function sourceOf(config: RunConfig): Source {
  return config.package ? checkPackageSource(config.package) : { kind: 'image', reference: config.image };
}

/** What is said of flags about how an image is built, given where none is built. */
export function unusedBuild(
  values: Pick<RunValues, 'runtimeImage' | 'runtimeAddPackage'>,
  source: Source,
  { runsImages, kind }: Pick<Runtime, 'runsImages' | 'kind'>,
): readonly string[] {
  if (values.runtimeImage === undefined && values.runtimeAddPackage === undefined) return [];
  if (runsImages && source.kind === 'package') return [];
  const where = source.kind === 'image' ? 'on an image' : `in the ${kind}`;
  return [`Warning: --runtime-image and --runtime-add-package have no effect ${where}\n`];
}

/** What is said of an image, which nobody has verified yet (docs/behaviour/run.md#image-verification). */
export function unverified(source: Source): readonly string[] {
  if (source.kind !== 'image') return [];
  const image = printable(source.reference);
  return [`Warning: where the image "${image}" comes from is not verified, which is not available yet\n`];
}
