import { SkepError } from '@skep/core/errors/skep-error.ts';
import { withBuildSecrets } from '../with-build-secrets.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { Prepared, PrepareRequest } from '../runtime.ts';
import type { Bubblewrap } from './confine.ts';
import { fetchedTree, treeVersion } from './package-trees.ts';

/** See `Runtime.prepare`: a package that is there is used, another one fetched; an image needs an engine. */
export async function prepare(
  environment: RuntimeEnvironment,
  bubblewrap: Bubblewrap,
  request: PrepareRequest,
): Promise<Prepared> {
  const { source } = request;
  if (request.signal.aborted) throw new SkepError('runtime/aborted', { cause: request.signal.reason });
  if (source.kind === 'image') {
    throw await needsEngine(environment, source.reference);
  }
  const fetched = await fetchedTree(environment, source);
  if (fetched !== undefined) return preparedTree(fetched);
  const { prefetch } = await import('./prefetch.ts');
  const given = await request.access?.reveal();
  const seen = given === undefined ? environment : withBuildSecrets(environment, given);
  return preparedTree(await prefetch(seen, bubblewrap, source, request));
}

/** With the engine that is nearly there, where one is. */
async function needsEngine(environment: RuntimeEnvironment, reference: string): Promise<SkepError> {
  const { connectEngine } = await import('../docker/find-engine.ts');
  const looked = await connectEngine(environment);
  const near = 'refusals' in looked ? looked.refusals.filter(({ why }) => why !== 'does not exist') : [];
  const tried = near.map(({ strategy, why }) => `${strategy}: ${why}`).join('; ');
  const hint = near.find((one) => one.hint !== undefined)?.hint;
  return new SkepError('runtime/image-needs-engine', {
    message: `image "${reference}" needs a container engine${tried === '' ? '' : ` (${tried})`}`,
    ...(hint === undefined ? {} : { hint }),
  });
}

function preparedTree(reference: string): Prepared {
  const version = treeVersion(reference);
  return { reference, ours: true, exposedPorts: [], ...(version === undefined ? {} : { version }) };
}
