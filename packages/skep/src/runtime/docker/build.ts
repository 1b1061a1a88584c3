import { setTimeout as pause } from 'node:timers/promises';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { BUILD_LABEL } from '../../protocol/build-recipe.ts';
import type { BuildRequest } from './build-request.ts';
import type { EngineClient } from './client.ts';
import { discardImage, findImage, sweepLayers } from './images.ts';
import { containerIds } from './containers.ts';
import { runBuild } from './run-build.ts';
import { buildWithSecrets } from './secret-build.ts';

/**
 * Builds an image through the engine. The classic builder is asked for because its progress is readable text. Whatever the outcome, the untagged layers of this build are removed; the tag exists only
 * when everything went well. Throws `runtime/build-failed`, `runtime/package-not-found` or `runtime/aborted`.
 */
export async function buildImage(client: EngineClient, request: BuildRequest): Promise<void> {
  const mark = `${BUILD_LABEL}=${request.buildId}`;
  try {
    await (request.secrets === undefined ? runBuild(client, request) : buildWithSecrets(client, request));
  } catch (error) {
    if (hasCode(error, 'runtime/aborted')) await clearAfterAbort(client, request, mark);
    throw error;
  } finally {
    await sweepLayers(client, mark);
  }
}

/** How long the engine may take to notice that a build was given up, in milliseconds. */
const ABORT_MS = 30_000;
const LOOK_MS = 250;

/**
 * The engine hears of an abort late: it may still finish a step, leave one more layer and even set the tag. Sweeps until
 * no container of the build is left and two looks in a row found nothing.
 */
async function clearAfterAbort(client: EngineClient, request: BuildRequest, mark: string): Promise<void> {
  request.report.step('Giving up the build');
  let quiet = 0;
  for (let waited = 0; waited < ABORT_MS && quiet < 2; waited += LOOK_MS) {
    await pause(LOOK_MS);
    const tagged = await findImage(client, request.tag);
    if (tagged?.labels[BUILD_LABEL] === request.buildId) await discardImage(client, request.tag);
    const busy = (await containerIds(client, { label: [mark] })).length > 0;
    const removed = busy ? 0 : await sweepLayers(client, mark);
    quiet = busy || removed > 0 ? 0 : quiet + 1;
  }
}
