import { basename, join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { withLock } from '@skep/core/files/lock.ts';
import { buildRecipe, type Scheme } from '../../protocol/build-recipe.ts';
import { GO } from '../../protocol/go.ts';
import { imageTag } from '../../protocol/image-tag.ts';
import { NPX } from '../../protocol/npx.ts';
import { packageReference, type PackageSource } from '../../protocol/reference.ts';
import { standaloneDockerfile } from '../../protocol/standalone-dockerfile.ts';
import { UVX } from '../../protocol/uvx.ts';
import { withBuildSecrets } from '../with-build-secrets.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { Prepared, PrepareRequest } from '../runtime.ts';
import type { BuildRequest } from './build-request.ts';
import { buildImage } from './build.ts';
import { buildIdOf } from './build-id.ts';
import type { EngineClient } from './client.ts';
import { parseImageReference } from './image-reference.ts';
import { findImage, removeImage } from './images.ts';
import { readLocalContext } from './local-context.ts';
import type { ObservedImage } from './observed.ts';
import { findRelease } from './package-release.ts';

const SCHEMES: Readonly<Record<PackageSource['ecosystem'], Scheme>> = { npm: NPX, pypi: UVX, go: GO };

/** Longer than the slowest build that somebody else may be at. */
const OTHERS_MS = 30 * 60_000;

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
  const { client, source, request } = build;
  const name = request.tag === undefined ? undefined : parseImageReference(request.tag);
  const planned = await planImage(source, request, build.environment);
  const { recipe, scheme, buildId, release, secrets } = planned;
  const base = await build.ensureBase(planned.baseImage);
  const beside = [release.releases, request.access?.identity].filter((one) => one !== undefined).join('\n');
  const tag = imageTag({
    scheme: scheme.name,
    name: nameOf(source),
    recipe,
    buildId,
    baseImageId: base.id,
    beside,
  });
  // Where nobody knows what the newest release is, the same text may mean a newer one.
  const isKnown = release.version !== undefined || release.releases !== undefined;
  const { report, signal } = request;
  const plain = { recipe, tag, buildId, subject: packageReference(source), report, signal };
  await buildOnce(
    build,
    secrets === undefined ? plain : { ...plain, secrets },
    isKnown && request.rebuild !== true,
  );
  if (name !== undefined) {
    const query = { repo: name.repository, tag: name.tag ?? 'latest' };
    await client.ask(`name an image "${request.tag}"`, { method: 'POST', path: `/images/${tag}/tag`, query });
  }
  const { version } = release;
  return { reference: tag, ours: true, exposedPorts: [], ...(version === undefined ? {} : { version }) };
}

/** See `Runtime.dockerfile`. */
export async function dockerfileOf(
  request: PrepareRequest,
  environment: RuntimeEnvironment,
): Promise<string> {
  if (request.source.kind !== 'package') {
    throw new SkepError('runtime/invalid-workload', { message: 'only packages have a Dockerfile' });
  }
  const { recipe } = await planImage(request.source, request, environment);
  return standaloneDockerfile(recipe);
}

/** A directory is nobody's matter who sees the image. */
const nameOf = ({ name, directory }: PackageSource): string =>
  directory === undefined ? name : basename(directory);

/** What is to be built, decided without the engine. */
async function planImage(source: PackageSource, request: PrepareRequest, machine: RuntimeEnvironment) {
  const secrets = await request.access?.reveal();
  const environment = secrets === undefined ? machine : withBuildSecrets(machine, secrets);
  const scheme = SCHEMES[source.ecosystem];
  const local =
    source.directory === undefined ? undefined : await readLocalContext(source.directory, request.signal);
  const found = await findRelease(source, environment, request);
  const release = local === undefined ? found : { ...found, version: local.version, releases: local.version };
  const { version, sources } = release;
  const baseImage = request.baseImage ?? scheme.baseImage;
  const buildId = buildIdOf(environment);
  const recipe = buildRecipe(scheme, {
    name: nameOf(source),
    baseImage,
    ...(local && { local }),
    addPackages: request.addPackages,
    buildId,
    sources,
    ...(version === undefined ? {} : { version }),
    ...(request.buildWith === undefined ? {} : { buildWith: request.buildWith }),
    ...(request.imageEnv === undefined ? {} : { env: request.imageEnv }),
    ...(request.bakedArgs === undefined ? {} : { args: request.bakedArgs }),
    ...(request.caCert === undefined ? {} : { caCert: await request.caCert() }),
  });
  return { recipe, scheme, release, baseImage, buildId, secrets };
}

/** Commands that want the same image at once wait for the one that builds it. */
async function buildOnce(
  { client, environment }: PackageBuild,
  request: BuildRequest,
  reuses: boolean,
): Promise<void> {
  const { tag, subject, signal, report } = request;
  if (reuses && (await findImage(client, tag, signal))) return;
  const lock = join(environment.cacheDir, 'builds', `${tag.replaceAll(/[^\w.-]/g, '_')}.lock`);
  await withLock(lock, { waitMs: OTHERS_MS, what: `the image for ${subject}`, signal }, async () => {
    const earlier = await findImage(client, tag, signal);
    if (reuses && earlier) return;
    report.step(`Building an image for ${subject}`);
    await buildImage(client, request);
    // It has lost its name to the new one; a container that was made from it keeps it.
    if (earlier) await removeImage(client, earlier.id);
  });
}
