import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer, listen } from '@skep/core/fetch/listen.ts';

/** A registry in memory, with as much of OCI distribution as a test needs. */
export class RegistryUnderTest implements AsyncDisposable {
  readonly #server = createServer((request, response) => this.#answer(request, response));
  readonly #manifests = new Map<string, Buffer>();
  readonly #blobs = new Map<string, Buffer>();
  readonly #referrers = new Map<string, object[]>();
  /** What was asked for, with the authorization that was shown. */
  readonly asked: { readonly path: string; readonly authorization: string | undefined }[] = [];
  host = '';
  /** Whether it knows the API for referrers. */
  knowsReferrers = true;
  /** `Bearer` sends whoever is not signed in to its own token service. */
  challenge: 'none' | 'Basic' | 'Bearer' = 'none';
  /** Answers these with other bytes than their digests say. */
  lies = new Map<string, string | Buffer>();
  /** Where it sends whoever is not signed in; its own token service otherwise. */
  realm: string | undefined;
  /** Sends whoever asks for a blob elsewhere. */
  elsewhere: string | undefined;
  /** Never answers these. */
  silent = new Set<string>();

  async open(): Promise<this> {
    this.host = `127.0.0.1:${await listen(this.#server, '127.0.0.1', 0)}`;
    return this;
  }

  /** Puts a document at a tag, and at its digest, which is answered. */
  put(tag: string, document: object): string {
    const bytes = Buffer.from(JSON.stringify(document));
    const digest = digestOf(bytes);
    for (const name of [tag, digest]) this.#manifests.set(name, bytes);
    return digest;
  }

  blob(bytes: Buffer): { digest: string; size: number } {
    const digest = digestOf(bytes);
    this.#blobs.set(digest, bytes);
    return { digest, size: bytes.length };
  }

  /** An image of that name, with a digest of its own. */
  image(tag: string): string {
    return this.put(tag, { schemaVersion: 2, mediaType: MANIFEST, config: { of: tag }, layers: [] });
  }

  /** Keeps a signature as cosign does. */
  signed(
    digest: string,
    layers: readonly { payload: Buffer; annotations: Readonly<Record<string, string>> }[],
  ): void {
    this.put(`${digest.replace(':', '-')}.sig`, {
      schemaVersion: 2,
      mediaType: MANIFEST,
      layers: layers.map(({ payload, annotations }) => ({
        mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json',
        ...this.blob(payload),
        annotations,
      })),
    });
  }

  /** Has a bundle refer to a digest, known by the API, or else by the tag in its place. */
  refers(digest: string, bundle: object): void {
    const artifactType = 'application/vnd.dev.sigstore.bundle.v0.3+json';
    const layer = { mediaType: artifactType, ...this.blob(Buffer.from(JSON.stringify(bundle))) };
    const at = this.put('', {
      schemaVersion: 2,
      mediaType: MANIFEST,
      artifactType,
      layers: [layer],
      subject: { digest },
    });
    const all = [
      ...(this.#referrers.get(digest) ?? []),
      { mediaType: MANIFEST, artifactType, digest: at, size: 1 },
    ];
    this.#referrers.set(digest, all);
    if (!this.knowsReferrers)
      this.put(digest.replace(':', '-'), { schemaVersion: 2, mediaType: INDEX, manifests: all });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeServer(this.#server);
  }

  #answer({ url = '', headers }: IncomingMessage, response: ServerResponse): void {
    this.asked.push({ path: url, authorization: headers.authorization });
    if (url.startsWith('/token'))
      return void response.end(
        JSON.stringify({ token: `for ${headers.authorization ?? 'anybody'}`.replaceAll(' ', '-') }),
      );
    if (this.challenge !== 'none' && headers.authorization === undefined) {
      const how =
        this.challenge === 'Basic'
          ? 'Basic realm="x"'
          : `Bearer realm="${this.realm ?? `http://${this.host}/token`}",service="it"`;
      return void response.writeHead(401, { 'www-authenticate': how }).end();
    }
    const [, kind = '', name = ''] = /\/(manifests|blobs|referrers)\/([^/]+)$/.exec(url) ?? [];
    if (this.silent.has(name)) return;
    if (kind === 'blobs' && this.elsewhere !== undefined)
      return void response.writeHead(307, { location: `${this.elsewhere}${url}` }).end();
    const found = this.lies.get(name) ?? this.#find(kind, name);
    if (found === undefined) response.writeHead(404).end('{}');
    else response.end(found);
  }

  #find(kind: string, name: string): Buffer | undefined {
    if (kind === 'manifests') return this.#manifests.get(name);
    if (kind === 'blobs') return this.#blobs.get(name);
    if (!this.knowsReferrers) return undefined;
    return Buffer.from(JSON.stringify({ mediaType: INDEX, manifests: this.#referrers.get(name) ?? [] }));
  }
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
