import { createHash, type Hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Transform, type TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { StreamedAnswer } from '@skep/core/fetch/requester.ts';
import { normalName } from '../../protocol/pypi-name.ts';
import { isMissing, notFetchedFrom } from '../gateway/ask-upstream.ts';
import { PackageGateway } from '../gateway/gateway.ts';
import type { Project, PythonIndexes } from './indexes.ts';
import type { IndexFile } from './simple-page.ts';

export interface PythonGatewayOptions {
  readonly indexes: Pick<PythonIndexes, 'project' | 'file'>;
  /** One that is known already. */
  readonly known?: Project;
  /** Told how many files have been fetched. */
  readonly onDownload: (count: number) => void;
  /** All files together; unlimited servers would fill the disk. */
  readonly maxBytes?: number;
}

const MAX_BYTES = 4 * 1024 * 1024 * 1024;
const METADATA = '.metadata';

/**
 * The one thing that a pip which is confined can reach: an index (PEP 503) that has what the person's own indexes have
 * and nothing else, pages of projects by name and the files that those pages name, wherever these lie. Each file is what
 * the index says it is: where its digest differs it breaks off before its end.
 */
export function pythonGateway(options: PythonGatewayOptions): PackageGateway {
  const index = new Index(options);
  return new PackageGateway(async ({ path, response, signal }) => {
    const [, project] = /^simple\/([A-Za-z0-9._-]+)\/$/.exec(path) ?? [];
    const [, owner = '', filename = ''] = /^files\/([a-z0-9-]+)\/([^/]+)$/.exec(path) ?? [];
    if (project !== undefined) {
      const page = await index.page(normalName(project), signal);
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
    } else if (filename !== '') await index.file(owner, filename, response, signal);
    else response.writeHead(404).end();
  });
}

class Index {
  readonly #options: PythonGatewayOptions;
  readonly #projects = new Map<string, Project>();
  #downloads = 0;
  #left: number;

  constructor(options: PythonGatewayOptions) {
    this.#options = options;
    this.#left = options.maxBytes ?? MAX_BYTES;
    if (options.known) this.#projects.set(options.known.name, options.known);
  }

  async page(name: string, signal: AbortSignal): Promise<string> {
    const project = this.#projects.get(name) ?? (await this.#options.indexes.project(name, signal));
    this.#projects.set(name, project);
    const lines = project.files.map((file) => anchor(name, file));
    return `<!DOCTYPE html>\n<html><body>\n${lines.join('\n')}\n</body></html>\n`;
  }

  /** Serves no file that no page has named, so whatever an address is made of, it is one of the index. */
  async file(owner: string, filename: string, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const project = this.#projects.get(owner);
    const isMetadata = filename.endsWith(METADATA);
    const plain = isMetadata ? filename.slice(0, -METADATA.length) : filename;
    const file = project?.files.find((one) => one.filename === plain);
    const hash = isMetadata ? file?.metadata : file?.hash;
    if (project === undefined || file === undefined || (isMetadata && hash === undefined)) {
      response.writeHead(404).end();
      return;
    }
    const url = new URL(file.url);
    if (isMetadata) url.pathname += METADATA;
    const answer = await this.#options.indexes.file(project, url, signal);
    if (isMissing(answer)) {
      answer.drop();
      throw notFetchedFrom(`the package index names "${filename}" and does not have it`);
    }
    await this.#send(answer, { filename, hash, response });
    if (!isMetadata) this.#options.onDownload((this.#downloads += 1));
  }

  async #send(
    answer: StreamedAnswer,
    { filename, hash, response }: { filename: string; hash: IndexFile['hash']; response: ServerResponse },
  ): Promise<void> {
    const length = answer.headers['content-length'];
    const packed = answer.headers['content-encoding'] !== undefined;
    response.writeHead(200, length === undefined || packed ? {} : { 'content-length': length });
    const count = (bytes: number): boolean => (this.#left -= bytes) >= 0;
    await pipeline(answer.body, new VerifiedFile(filename, hash, count), response);
  }
}

/** Passes a file on and holds its last piece back until the digest of all is the right one. */
class VerifiedFile extends Transform {
  readonly #filename: string;
  readonly #wanted: string | undefined;
  readonly #hash: Hash | undefined;
  readonly #count: (bytes: number) => boolean;
  #held: Buffer | undefined;

  constructor(filename: string, wanted: IndexFile['hash'], count: (bytes: number) => boolean) {
    super();
    this.#filename = filename;
    this.#wanted = wanted?.[1];
    this.#hash = wanted && createHash(wanted[0]);
    this.#count = count;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (!this.#count(chunk.length)) {
      done(notFetchedFrom('its files are too large together'));
      return;
    }
    this.#hash?.update(chunk);
    const before = this.#held;
    this.#held = chunk;
    done(null, before);
  }

  override _flush(done: TransformCallback): void {
    if (this.#hash !== undefined && this.#hash.digest('hex') !== this.#wanted)
      done(notFetchedFrom(`the file "${this.#filename}" is not the one that the package index describes`));
    else done(null, this.#held);
  }
}

function anchor(owner: string, { filename, hash, metadata, requiresPython, yanked }: IndexFile): string {
  const attributes = [
    ['href', `/files/${owner}/${encodeURIComponent(filename)}${hash ? `#${hash.join('=')}` : ''}`],
    ['data-requires-python', requiresPython],
    ['data-yanked', yanked],
    ['data-core-metadata', metadata?.join('=')],
    ['data-dist-info-metadata', metadata?.join('=')],
  ].flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${escaped(value)}"`]));
  return `<a ${attributes.join(' ')}>${escaped(filename)}</a>`;
}

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.codePointAt(0)};`);
