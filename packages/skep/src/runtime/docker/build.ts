import { stripVTControlCharacters } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import { pack } from 'tar-stream';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { BUILD_LABEL, type BuildRecipe } from '../../protocol/build-recipe.ts';
import type { Report } from '../runtime.ts';
import { buildFailure } from './build-failure.ts';
import type { EngineClient } from './client.ts';
import { engineMessage, refused } from './failure.ts';
import { discardImage, findImage, sweepLayers } from './images.ts';
import { containerIds } from './containers.ts';
import { progressError, progressLine } from './progress.ts';

export interface BuildRequest {
  readonly recipe: BuildRecipe;
  readonly tag: string;
  readonly buildId: string;
  /** As the user wrote it, for messages. */
  readonly subject: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Builds an image through the engine. The context is a tar made in memory; the classic builder is asked for because its
 * progress is readable text. Whatever the outcome, the untagged layers of this build are removed; the tag exists only
 * when everything went well. Throws `runtime/build-failed`, `runtime/package-not-found` or `runtime/aborted`.
 */
export async function buildImage(client: EngineClient, request: BuildRequest): Promise<void> {
  const mark = `${BUILD_LABEL}=${request.buildId}`;
  try {
    await runBuild(client, request);
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

async function runBuild(client: EngineClient, request: BuildRequest): Promise<void> {
  const building = {
    method: 'POST',
    path: '/build',
    query: { t: request.tag, rm: '1', forcerm: '1', version: '1', dockerfile: 'Dockerfile' },
    body: contextTar(request.recipe),
    signal: request.signal,
  } as const;
  const output = new Transcript(request.report);
  for await (const value of client.lines(building, (answer) => refused('build an image', answer))) {
    const line = progressLine(value);
    const failure = progressError(line);
    if (failure !== undefined) throw buildFailure(request.subject, output.text(), engineMessage(failure));
    output.take(line.stream ?? line.status ?? '');
  }
}

function contextTar(recipe: BuildRecipe) {
  const archive = pack();
  for (const [name, content] of Object.entries(recipe.files)) archive.entry({ name, mtime: EPOCH }, content);
  archive.finalize();
  return archive;
}

/** A fixed time, so that the builder sees the same context for the same content. */
const EPOCH = new Date(0);

/** Layer and container ids, which say nothing to a person. */
const NOISE = /^(?:--->|Removing intermediate container)/;

/** Splits the builder's text into lines, reports them, keeps the last ones for the error. */
class Transcript {
  readonly #report: Report;
  readonly #lines: string[] = [];
  #pending = '';

  constructor(report: Report) {
    this.#report = report;
  }

  take(text: string): void {
    const lines = (this.#pending + text).split(/\r?\n|\r/);
    this.#pending = lines.pop() ?? '';
    const plain = lines.map((line) => stripVTControlCharacters(line).trim());
    for (const line of plain.filter((one) => one !== '' && !NOISE.test(one))) {
      this.#report.detail(line);
      this.#lines.push(line);
      if (this.#lines.length > 40) this.#lines.shift();
    }
  }

  text(): string {
    return [...this.#lines, this.#pending].join('\n');
  }
}
