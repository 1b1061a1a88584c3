import { createHash } from 'node:crypto';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import {
  openRequester,
  withDeadline,
  type Connections,
  type Requester,
  type StreamedAnswer,
} from '@skep/core/fetch/requester.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { Login } from '../credentials.ts';
import type { ImageReference } from '../image-reference.ts';

/** A manifest, or a list of them, with the digest of exactly these bytes. */
export interface Manifest {
  readonly digest: string;
  readonly document: Readonly<Record<string, unknown>>;
}

/** What a manifest or list refers to. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly artifactType?: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const MANIFESTS = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');
/** As much as registries take. */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 30_000;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/;

/** Names that a registry is written under, and where it answers. */
const HUB = 'docker.io';
const HUB_API = 'registry-1.docker.io';

/**
 * One repository of a registry, asked as OCI distribution 1.1 says: for manifests, blobs and what refers to a digest.
 * Everything that comes back is checked against its digest, or only used to find what is.
 */
export class ImageRegistry implements Disposable {
  readonly #base: URL;
  readonly #repository: string;
  readonly #login: Login | undefined;
  readonly #requester: Requester;
  readonly #signal: AbortSignal;
  #authorization: string | undefined;

  constructor(
    { host, repository }: ImageReference,
    {
      login,
      signal,
      ...connections
    }: Connections & { readonly login?: Login | undefined; readonly signal: AbortSignal },
  ) {
    const path = repository.startsWith(`${host}/`) ? repository.slice(host.length + 1) : repository;
    this.#repository = host === HUB && !path.includes('/') ? `library/${path}` : path;
    // As engines do: what is on this machine may do without TLS, nothing else.
    const scheme = LOOPBACK.test(host) ? 'http' : 'https';
    this.#base = new URL(`${scheme}://${host === HUB ? HUB_API : host}/v2/${this.#repository}/`);
    this.#login = login;
    this.#signal = signal;
    this.#requester = openRequester(connections);
  }

  /** The manifest of a tag or digest; undefined where there is none. */
  async manifest(tagOrDigest: string): Promise<Manifest | undefined> {
    const bytes = await this.#get(`manifests/${tagOrDigest}`, MAX_MANIFEST_BYTES, MANIFESTS);
    if (bytes === undefined) return undefined;
    const digest = digestOf(bytes);
    if (DIGEST.test(tagOrDigest) && digest !== tagOrDigest) throw this.#lies(tagOrDigest);
    const document = parsedJson(bytes.toString('utf8'));
    if (!isRecord(document)) throw this.#lies(tagOrDigest);
    return { digest, document };
  }

  /** A blob of at most `maxBytes`; undefined where there is none. */
  async blob(digest: string, maxBytes: number): Promise<Buffer | undefined> {
    if (!DIGEST.test(digest)) throw this.#lies(digest);
    const bytes = await this.#get(`blobs/${digest}`, maxBytes, '*/*');
    if (bytes !== undefined && digestOf(bytes) !== digest) throw this.#lies(digest);
    return bytes;
  }

  /** What says that it refers to the digest: by the API for it, or where that is missing by the tag in its place. */
  async referrers(digest: string): Promise<readonly Descriptor[]> {
    const bytes = await this.#get(`referrers/${digest}`, MAX_MANIFEST_BYTES, MANIFESTS);
    const list = bytes === undefined ? undefined : parsedJson(bytes.toString('utf8'));
    if (isRecord(list)) return descriptors(list['manifests']);
    const fallback = await this.manifest(digest.replace(':', '-'));
    return descriptors(fallback?.document['manifests']);
  }

  [Symbol.dispose](): void {
    this.#requester.close();
  }

  async #get(path: string, maxBytes: number, accept: string): Promise<Buffer | undefined> {
    const url = new URL(path, this.#base);
    return withDeadline({ url, timeoutMs: TIMEOUT_MS, signal: this.#signal }, async (signal) => {
      let answer = await this.#send(url, accept, signal);
      if (answer.status === 401) {
        answer.drop();
        this.#authorization = await this.#signIn(answer, signal);
        answer = await this.#send(url, accept, signal);
      }
      if (answer.status === 200) return readLimited(answer.body, maxBytes, answer.headers['content-length']);
      answer.drop();
      if (answer.status === 404) return undefined;
      throw this.#failure(`answered with status ${answer.status}`);
    });
  }

  #send(url: URL, accept: string, signal: AbortSignal): Promise<StreamedAnswer> {
    const authorization = this.#authorization;
    const headers = { accept, 'accept-encoding': 'identity' };
    // Blobs are often kept elsewhere, which is not shown who asks.
    const showTo = (at: URL) => ({
      headers:
        at.origin === url.origin && authorization !== undefined ? { ...headers, authorization } : headers,
    });
    return this.#requester.send(url, { showTo, redirects: 'follow', signal });
  }

  /** Answers a challenge (RFC 7235; tokens as the distribution specification has them) with a header. */
  async #signIn({ headers }: StreamedAnswer, signal: AbortSignal): Promise<string> {
    const challenge = headers['www-authenticate'] ?? '';
    const login = this.#login;
    const basic = login !== undefined && 'username' in login ? basicOf(login) : undefined;
    if (/^basic\b/i.test(challenge) && basic !== undefined) return basic;
    const realm = URL.parse(parameter(challenge, 'realm') ?? '');
    const isOwn =
      realm !== null &&
      (realm.protocol === 'https:' || (realm.protocol === 'http:' && LOOPBACK.test(realm.host)));
    if (!/^bearer\b/i.test(challenge) || !isOwn) throw this.#failure('asks to sign in, and Skep cannot');
    const service = parameter(challenge, 'service') ?? '';
    const token = await this.#token(realm, { service, basic, signal });
    return `Bearer ${token}`;
  }

  async #token(
    realm: URL,
    { service, basic, signal }: { service: string; basic: string | undefined; signal: AbortSignal },
  ): Promise<string> {
    const wanted = { service, scope: `repository:${this.#repository}:pull` };
    const refresh = this.#login !== undefined && 'identitytoken' in this.#login ? this.#login : undefined;
    const sending =
      refresh === undefined
        ? { headers: basic === undefined ? {} : { authorization: basic } }
        : {
            headers: { 'content-type': 'application/x-www-form-urlencoded' },
            method: 'POST' as const,
            body: String(
              new URLSearchParams({
                ...wanted,
                grant_type: 'refresh_token',
                refresh_token: refresh.identitytoken,
                client_id: 'skep',
              }),
            ),
          };
    if (refresh === undefined)
      for (const [name, value] of Object.entries(wanted)) realm.searchParams.set(name, value);
    const { headers, ...rest } = sending;
    const answer = await this.#requester.send(realm, {
      ...rest,
      showTo: () => ({ headers: { ...headers, accept: 'application/json', 'accept-encoding': 'identity' } }),
      redirects: 'answer',
      signal,
    });
    const said = parsedJson((await readLimited(answer.body, MAX_MANIFEST_BYTES)).toString('utf8'));
    const token = isRecord(said) ? (said['token'] ?? said['access_token']) : undefined;
    if (answer.status !== 200 || typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
      throw this.#failure('did not let Skep sign in');
    return token;
  }

  #failure(what: string): SkepError {
    return new SkepError('runtime/unverified', {
      message: `the registry of ${this.#repository} (${this.#base.host}) ${what}`,
      hint: 'check the image, and the login for its registry',
    });
  }

  #lies(what: string): SkepError {
    return this.#failure(`gave something else than ${what}`);
  }
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

const basicOf = ({ username, password }: { username: string; password: string }): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** A quoted parameter of a challenge. */
function parameter(challenge: string, name: string): string | undefined {
  return new RegExp(`[\\s,]${name}="([^"]*)"`, 'i').exec(challenge)?.[1];
}

/** What can be read as descriptors; the rest refers to nothing that is looked for. */
export function descriptors(list: unknown): readonly Descriptor[] {
  return (Array.isArray(list) ? (list as unknown[]) : []).flatMap((value) => {
    if (!isRecord(value)) return [];
    const { mediaType, digest, artifactType, annotations } = value;
    if (typeof mediaType !== 'string' || typeof digest !== 'string' || !DIGEST.test(digest)) return [];
    const texts = Object.entries(isRecord(annotations) ? annotations : {}).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    );
    const kind = typeof artifactType === 'string' ? { artifactType } : {};
    return [{ mediaType, digest, ...kind, annotations: Object.fromEntries(texts) }];
  });
}
