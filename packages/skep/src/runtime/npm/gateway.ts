import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { isNpmName } from '../../protocol/npm-name.ts';
import { PackageGateway } from '../gateway/gateway.ts';
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
export function npmGateway(options: GatewayOptions): PackageGateway {
  const registry = new Registry(options);
  return new PackageGateway(async ({ path, accept, response, signal }) => {
    if (path.startsWith(TARBALLS)) await registry.tarball(path.slice(TARBALLS.length), response, signal);
    else if (isNpmName(path)) {
      const document = await registry.document(path, wantedForm(accept), signal);
      response.writeHead(200, { 'content-type': 'application/json' }).end(document);
    } else response.writeHead(404).end('{}');
  });
}

class Registry {
  readonly #options: GatewayOptions;
  /** Path below TARBALLS → address, of all documents that were served. */
  readonly #tarballs = new Map<string, { readonly name: string; readonly url: URL }>();
  #downloads = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  async document(name: string, accept: string, signal: AbortSignal): Promise<string> {
    const { known, upstream } = this.#options;
    const packument =
      known?.name === name && accept === SHORT
        ? known.packument
        : await upstream.packument(name, accept, signal);
    return JSON.stringify({ ...packument, versions: this.#withOwnAddresses(name, packument) });
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

  async tarball(path: string, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const named = this.#tarballs.get(path);
    if (named === undefined) return void response.writeHead(404).end('{}');
    const answer = await this.#options.upstream.tarball(named.name, named.url, signal);
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
