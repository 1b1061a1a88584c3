import { stripVTControlCharacters } from 'node:util';
import { pack } from 'tar-stream';
import type { BuildRecipe } from '../../protocol/build-recipe.ts';
import type { BuildSecrets } from '../build-secrets.ts';
import type { Report } from '../runtime.ts';
import type { PlainBuild } from './build-request.ts';
import { buildFailure } from './build-failure.ts';
import type { EngineClient } from './client.ts';
import { engineMessage, refused } from './failure.ts';
import { progressError, progressLine } from './progress.ts';

type RunRequest = Omit<PlainBuild, 'buildId' | 'secrets'> & {
  readonly secrets?: Pick<BuildSecrets, 'hidden'> | undefined;
};

/** One build of the engine, from a context that is a tar made in memory. Throws as `buildImage`. */
export async function runBuild(client: EngineClient, request: RunRequest): Promise<void> {
  const building = {
    method: 'POST',
    path: '/build',
    query: { t: request.tag, rm: '1', forcerm: '1', version: '1', dockerfile: 'Dockerfile' },
    body: contextTar(request.recipe),
    signal: request.signal,
  } as const;
  const output = new Transcript(request.report, request.secrets?.hidden);
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
  for (const part of recipe.sources ?? []) {
    const name = `source/${part.name}`;
    if (part.kind === 'directory')
      archive.entry({ name: `${name}/`, type: 'directory', mode: 0o755, mtime: EPOCH });
    else if (part.kind === 'link')
      archive.entry({ name, type: 'symlink', linkname: part.target, mtime: EPOCH });
    else archive.entry({ name, mode: 0o644, mtime: EPOCH }, part.content);
  }
  archive.finalize();
  return archive;
}

/** A fixed time, so that the builder sees the same context for the same content. */
const EPOCH = new Date(0);

/** Layer and container ids, which say nothing to a person. */
const NOISE = /^(?:--->|Removing intermediate container)/;

/** Splits the builder's text into lines, reports them without what is hidden, keeps the last ones for the error. */
export class Transcript {
  readonly #report: Report;
  readonly #hidden: readonly string[];
  readonly #lines: string[] = [];
  #pending = '';

  constructor(report: Report, hidden: readonly string[] = []) {
    this.#report = report;
    this.#hidden = hidden;
  }

  take(text: string): void {
    const lines = (this.#pending + text).split(/\r?\n|\r/);
    this.#pending = lines.pop() ?? '';
    const plain = lines.map((line) => this.#shown(stripVTControlCharacters(line).trim()));
    for (const line of plain.filter((one) => one !== '' && !NOISE.test(one))) {
      this.#report.detail(line);
      this.#lines.push(line);
      if (this.#lines.length > 40) this.#lines.shift();
    }
  }

  text(): string {
    return [...this.#lines, this.#shown(this.#pending)].join('\n');
  }

  #shown(line: string): string {
    return this.#hidden.reduce((text, secret) => text.replaceAll(secret, '[redacted]'), line);
  }
}
