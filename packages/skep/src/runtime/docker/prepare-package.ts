import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { buildRecipe, type Scheme } from '../../protocol/build-recipe.ts';
import { imageTag } from '../../protocol/image-tag.ts';
import { NPX } from '../../protocol/npx.ts';
import { packageReference } from '../../protocol/reference.ts';
import { UVX } from '../../protocol/uvx.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { readNpmConfig } from '../npm/npmrc.ts';
import { registryFor, withoutLogin } from '../npm/registries.ts';
import { Upstream } from '../npm/upstream.ts';
import type { Prepared, PrepareRequest } from '../runtime.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import { NEEDS_NO_IMAGES } from '../../settings/identity.ts';
import { buildImage } from './build.ts';
import type { EngineClient } from './client.ts';
import { findImage } from './images.ts';
import { pythonIndex } from './python-index.ts';
import { buildIdOf } from './sweep.ts';
import type { ObservedImage } from './observed.ts';

const SCHEMES: Readonly<Record<PackageSource['ecosystem'], Scheme | undefined>> = {
  npm: NPX,
  pypi: UVX,
  go: undefined,
};

export interface PackageBuild {
  readonly client: EngineClient;
  readonly environment: RuntimeEnvironment;
  readonly source: PackageSource;
  readonly request: PrepareRequest;
  /** Pulls the base image when it is missing. */
  readonly ensureBase: (reference: string) => Promise<ObservedImage>;
}

/** Builds the image of a package, or finds the one that the same inputs built before. */
export async function preparePackage(build: PackageBuild): Promise<Prepared> {
  const { client, environment, source, request } = build;
  const scheme = SCHEMES[source.ecosystem];
  if (!scheme) {
    throw new SkepError('usage/not-available', {
      message: `"${packageReference(source)}": go packages are not available on an engine yet`,
      hint: `run an image of it, or run it in the sandbox: --runtime ${NEEDS_NO_IMAGES}`,
    });
  }
  const version = source.ecosystem === 'npm' ? await exactVersion(build) : source.version;
  const baseImage = request.baseImage ?? scheme.baseImage;
  const base = await build.ensureBase(baseImage);
  const buildId = buildIdOf(environment);
  const registry = await registryOf(source, environment);
  const recipe = buildRecipe(scheme, {
    name: source.name,
    baseImage,
    addPackages: request.addPackages,
    buildId,
    ...(version === undefined ? {} : { version }),
    ...(request.caCert === undefined ? {} : { caCert: await request.caCert() }),
    ...(registry === undefined ? {} : { registry }),
  });
  const tag = imageTag({ scheme: scheme.name, name: source.name, recipe, buildId, baseImageId: base.id });
  const existing = await findImage(client, tag, request.signal);
  // Without an exact version the same text may mean a newer package, so nothing is reused.
  const prepared: Prepared = {
    reference: tag,
    ours: true,
    exposedPorts: [],
    ...(version === undefined ? {} : { version }),
  };
  if (existing && version !== undefined) return prepared;
  const subject = packageReference(source);
  request.report.step(`Building an image for ${subject}`);
  await buildImage(client, { recipe, tag, buildId, subject, report: request.report, signal: request.signal });
  return prepared;
}

/** Where only npm knows which registry to ask, and it is not on this machine, the build itself resolves the version. */
async function exactVersion({ environment, source, request }: PackageBuild): Promise<string | undefined> {
  request.report.step(`Looking up ${packageReference(source)}`);
  try {
    using upstream = await Upstream.open(environment, await request.caCert?.());
    return (await upstream.resolve(source, request.signal)).version;
  } catch (error) {
    if (!hasCode(error, 'runtime/npm-missing')) throw error;
    request.report.detail('npm is not on this machine; the build looks the version up');
    return source.version;
  }
}

/** The address alone: what signs in to it has no place in a build. */
async function registryOf(
  source: PackageSource,
  environment: RuntimeEnvironment,
): Promise<string | undefined> {
  const { env } = environment;
  if (source.ecosystem === 'npm') {
    const registry = registryFor(await readNpmConfig(environment), '');
    return registry && withoutLogin(registry);
  }
  return pythonIndex(env);
}
