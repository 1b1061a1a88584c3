import { resolve } from 'node:path';
import type { ExtensionProvenance } from '@skep/core/catalog/publisher-extension.ts';
import { untagged } from '@skep/core/catalog/untagged.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { AppConfig } from '../config/app-config.ts';
import { checkRecipeOptions } from '../protocol/build-recipe.ts';
import { checkPackageSource, packageReference } from '../protocol/reference.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime, Source, Verification } from '../runtime/runtime.ts';
import { buildSettings } from '../settings/build.ts';
import type { RunValues } from '../settings/run-settings.ts';
import { buildAccess } from './build-access.ts';
import type { Preparation, Surroundings } from './plan.ts';

type BuildConfig = Exclude<RunConfig['runtime_config'], undefined>;

/** What flags say about a build, as a run configuration keeps it. */
export function buildOf({
  runtimeImage,
  runtimeAddPackage = [],
  buildWith = [],
}: Pick<RunValues, 'runtimeImage' | 'runtimeAddPackage' | 'buildWith'>): BuildConfig {
  return {
    ...(runtimeImage === undefined ? {} : { builder_image: runtimeImage }),
    ...(runtimeAddPackage.length === 0 ? {} : { additional_packages: runtimeAddPackage }),
    ...(buildWith.length === 0 ? {} : { build_with: buildWith }),
  };
}

interface Building {
  /** Of the run configuration. */
  readonly build: BuildConfig;
  readonly settings: Settings;
  readonly app: AppConfig;
}

/** How a source is pulled, built or fetched. Parsing authorities takes a while, so they are read when asked for. */
export function preparationOf(
  source: Source,
  { build, settings, app }: Building,
  around: Surroundings,
): Preparation {
  const { builder_image: baseImage, additional_packages: addPackages = [], build_with: buildWith } = build;
  checkRecipeOptions({
    addPackages,
    ...(baseImage === undefined ? {} : { baseImage }),
    ...(buildWith === undefined ? {} : { buildWith }),
  });
  const { caCert: path, rebuild } = valuesOf(buildSettings, settings);
  const access = source.kind === 'package' ? buildAccess(app, around) : undefined;
  return {
    source,
    // A supervisor that does it for a command has fewer variables.
    env: around.env,
    ...(baseImage === undefined ? {} : { baseImage }),
    addPackages,
    ...(buildWith === undefined ? {} : { buildWith }),
    ...(rebuild ? { rebuild } : {}),
    ...(access && { access }),
    ...(path && { caCert: async () => (await readCaBundle(resolve(around.cwd, path))).join('\n') }),
  };
}
/** What a run configuration runs from. */
export function sourceOf(config: RunConfig): Source {
  if (config.remote_url !== undefined) return { kind: 'image', reference: config.remote_url };
  return config.package ? checkPackageSource(config.package) : { kind: 'image', reference: config.image };
}

/** Requirements that no build of that package could have; `buildRecipe` would say it after the version was looked up. */
export function checkBuildWith({ buildWith = [] }: Pick<RunValues, 'buildWith'>, source: Source): void {
  if (buildWith.length === 0 || source.kind !== 'package' || source.ecosystem === 'pypi') return;
  throw new SkepError('usage/conflict', {
    message: `--build-with is for Python packages, which "${packageReference(source)}" is not`,
    hint: 'leave it out; system packages are added with --runtime-add-package',
  });
}

/** What is said of flags about how an image is built, given where none is built. */
export function unusedBuild(
  { runtimeImage, runtimeAddPackage, buildWith, rebuild }: BuildFlags,
  source: Source,
  { runsImages, kind }: Pick<Runtime, 'runsImages' | 'kind'>,
): readonly string[] {
  if (runsImages && source.kind === 'package') return [];
  const given = [
    ...(runtimeImage === undefined ? [] : ['--runtime-image']),
    ...(runtimeAddPackage === undefined ? [] : ['--runtime-add-package']),
    ...(buildWith === undefined ? [] : ['--build-with']),
    ...(rebuild ? ['--rebuild'] : []),
  ];
  if (given.length === 0) return [];
  const where = source.kind === 'image' ? 'on an image' : `in the ${kind}`;
  const have = given.length === 1 ? 'has' : 'have';
  return [`Warning: ${given.join(', ')} ${have} no effect ${where}\n`];
}

type BuildFlags = Partial<Pick<RunValues, 'runtimeImage' | 'runtimeAddPackage' | 'buildWith' | 'rebuild'>>;

/**
 * What the catalogue says now of who signs the image of a file that came from elsewhere; undefined where it does not know
 * it. The file itself is not believed. Fails as asking the catalogue does.
 */
export async function provenanceOf(
  { registry_server_name: called, image }: RunConfig,
  config: AppConfig,
  around: Surroundings,
): Promise<ExtensionProvenance | undefined> {
  if (called === undefined) return undefined;
  const { openCatalog } = await import('../catalog/open-catalog.ts');
  const catalog = await openCatalog({ config, around });
  const entry = await catalog.find(called, around.signal);
  if (entry === undefined) return undefined;
  const { runPlans } = await import('@skep/core/catalog/run-plan.ts');
  for (const plan of runPlans(entry.document)) {
    const { target } = plan;
    if (target.kind === 'image' && 'provenance' in plan && untagged(target.reference) === untagged(image))
      return plan.provenance;
  }
  return undefined;
}

/** How the origin of what is run is verified (docs/behaviour/run.md#image-verification), and what is said of it. */
export interface Origin {
  readonly verification?: Verification;
  readonly warnings: readonly string[];
}

/**
 * What the catalogue says of an image is verified; of anything else nobody says where it comes from, which is told, or
 * with `enabled` fails with `runtime/unverified`.
 */
export function originOf(
  source: Source,
  expected: ExtensionProvenance | null | undefined,
  mode: RunValues['imageVerification'],
  { sigstoreTrustedRoot: trustedRoot }: Pick<AppConfig, 'sigstoreTrustedRoot'>,
): Origin {
  if (mode === 'disabled') return { warnings: [] };
  const required = mode === 'enabled';
  if (source.kind === 'image' && expected) {
    return { verification: { expected, required, ...(trustedRoot && { trustedRoot }) }, warnings: [] };
  }
  const what = source.kind === 'image' ? `the image "${source.reference}"` : packageReference(source);
  if (required) {
    throw new SkepError('runtime/unverified', {
      message: `provenance server information not set: no catalogue says who signs ${printable(what)}`,
    });
  }
  if (source.kind === 'package') return { warnings: [] };
  return {
    warnings: [
      `Warning: where ${printable(what)} comes from is not verified: no catalogue says who signs it\n`,
    ],
  };
}
