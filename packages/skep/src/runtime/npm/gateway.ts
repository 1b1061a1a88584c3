import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isNpmName } from '../../protocol/npm-name.ts';
import type { Packument } from './choose-version.ts';
import { SHORT, type Upstream } from './upstream.ts';

export interface GatewayOptions {
  readonly upstream: Upstream;
  /** What the addresses begin with that npm is told. */
  readonly address: string;
  /** A document that is known already. */
  readonly known?: { readonly name: string; readonly packument: Packument };
  /** Told how many tarballs have been fetched. */
  readonly onDownload: (count: number) => void;
}

/** Below this, tarballs are `<name>/<version>.tgz`. No package can have a name that begins with a dash. */
const TARBALLS = '-/';

/**
 * The one thing that an npm which is confined can reach. It is a registry that has what the person's own registries
 * have and nothing else: documents of packages by name, and the tarballs that those documents name, wherever these lie.
 * It serves no address that is asked for, so whoever asks can reach no other host, and it adds the logins itself, so
 * whoever asks never sees one.
 */
export class Gateway {
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #options: GatewayOptions;
  /** Path below TARBALLS → address, of all documents that were served. */
  readonly #tarballs = new Map<string, { readonly name: string; readonly url: URL }>();
  readonly #ending = new AbortController();
  /** By requested path. npm asks a second time, so a failure may be over. */
  readonly #failures = new Map<string, SkepError>();
  #downloads = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  /** Listens on a Unix socket. */
  async listen(socket: string): Promise<void> {
    this.#server.listen(socket);
    await once(this.#server, 'listening');
  }

  /** The first thing that went wrong and stayed so, in words that name the real registry. */
  get failure(): SkepError | undefined {
    return this.#failures.values().next().value;
  }

  /** Ends all connections. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new SkepError('runtime/aborted'));
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer({ method, url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const path = decodeURIComponent(url.slice(1));
      if (method !== 'GET') response.writeHead(405).end();
      else if (path.startsWith(TARBALLS)) await this.#tarball(path.slice(TARBALLS.length), response);
      else if (isNpmName(path)) await this.#document(path, wantedForm(headers.accept), response);
      else response.writeHead(404).end('{}');
      this.#failures.delete(url);
    } catch (error) {
      const known = error instanceof SkepError ? error : undefined;
      if (known && !this.#ending.signal.aborted) this.#failures.set(url, known);
      if (response.headersSent) response.destroy();
      else response.writeHead(known?.code === 'runtime/package-not-found' ? 404 : 502).end('{}');
    }
  }

  async #document(name: string, accept: string, response: ServerResponse): Promise<void> {
    const { known, upstream } = this.#options;
    const packument =
      known?.name === name && accept === SHORT
        ? known.packument
        : await upstream.packument(name, accept, this.#ending.signal);
    const body = JSON.stringify({ ...packument, versions: this.#withOwnAddresses(name, packument) });
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  }

  /** Every version with the address of its tarball replaced by one of this gateway's. */
  #withOwnAddresses(name: string, { versions }: Packument): object {
    const all = Object.entries(versions).map(([version, manifest]) => {
      const url = URL.parse(manifest.dist?.tarball ?? '');
      if (url === null || !/^https?:$/.test(url.protocol)) return [version, manifest];
      const path = `${name}/${version}.tgz`;
      this.#tarballs.set(path, { name, url });
      const tarball = this.#options.address + TARBALLS + encodeURI(path);
      return [version, { ...manifest, dist: { ...manifest.dist, tarball } }];
    });
    return Object.fromEntries(all) as object;
  }

  async #tarball(path: string, response: ServerResponse): Promise<void> {
    const named = this.#tarballs.get(path);
    if (named === undefined) return void response.writeHead(404).end('{}');
    const answer = await this.#options.upstream.tarball(named.name, named.url, this.#ending.signal);
    const length = answer.headers['content-length'];
    response.writeHead(answer.status, length === undefined ? {} : { 'content-length': length });
    await pipeline(answer.body, response);
    this.#options.onDownload((this.#downloads += 1));
  }
}

/** npm asks for the long form where the age of versions matters. */
function wantedForm(accept = SHORT): string {
  return accept.includes('install-v1') ? SHORT : 'application/json';
}
