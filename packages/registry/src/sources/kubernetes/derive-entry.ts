import type { ClaimLimits } from '@skep/auth/claims/claims.ts';
import { publishedVersionFault, serverNameFault } from '@skep/core/catalog/entry-name.ts';
import { EXTENSION_NAMESPACE, PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import { SERVER_SCHEMA_URL } from '@skep/core/catalog/server-json.ts';
import { hasLogin, parseHttpUrl } from '@skep/core/fetch/http-url.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { WatchedServer } from '../watched-source.ts';
import { Annotations } from './annotations.ts';
import { imageVersion } from './image-version.ts';
import type { ObjectKindName } from './object-kinds.ts';

/** An object of the cluster as it was sent, its place checked. */
export interface ClusterObject {
  readonly kind: ObjectKindName;
  readonly namespace: string;
  readonly name: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: unknown;
}

export interface DeriveLimits {
  readonly claims: ClaimLimits;
  /** Bytes of one document. */
  readonly maxDocumentSize: number;
}

/** What an exported object comes to: a server, or the reason why it is not shown. */
export type Derived = { readonly warnings: readonly string[] } & (
  | { readonly server: WatchedServer }
  | { readonly name: string; readonly refusal: string }
);

/** Three numbers and perhaps a pre-release (semver 2.0 §2 and §9), with or without a `v`. */
const VERSION =
  /^v?(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*)?$/;
const MAX_VERSION = 255;
const FIRST_VERSION = '1.0.0';
const MAX_TAG = 100;

/** The name of the entry that an object of this name makes. */
export function entryName(namespace: string, name: string): string {
  return `dev.skep.k8s.${namespace}/${name}`;
}

/**
 * The server that an object describes by its annotations (docs/behaviour/registry.md#kubernetes); undefined for one that
 * does not ask to be shown. What decides about who sees it must be right, or it is refused; what is only shown is ignored
 * with a warning where it is wrong.
 */
export function deriveServer(object: ClusterObject, limits: DeriveLimits): Derived | undefined {
  const annotations = new Annotations(object.metadata['annotations']);
  if (!annotations.isExported) return undefined;
  const name = entryName(object.namespace, object.name);
  const warnings: string[] = [];
  const warn = (about: string): void => void warnings.push(`${name}: ${about}`);
  const refused = (refusal: string): Derived => ({ name, refusal, warnings });
  const unnamed = serverNameFault(name);
  if (unnamed !== undefined) return refused(unnamed);
  const read = annotations.claims(limits.claims);
  if ('fault' in read) return refused(read.fault);
  const url = annotations.text('registry-url');
  const description = annotations.text('registry-description');
  if (url === undefined || description === undefined || description === '') {
    return refused(`it has no registry-${url === undefined ? 'url' : 'description'}`);
  }
  if (!isPlainHttpUrl(url)) return refused('registry-url is no http or https URL, or has a user in it');
  const run = runFacts(object, url);
  const title = annotations.text('registry-title');
  const document = {
    $schema: SERVER_SCHEMA_URL,
    name,
    ...(title === undefined || title === '' ? {} : { title }),
    description,
    version: versionOf(annotations, run.image, warn),
    ...iconOf(annotations, warn),
    ...run.packages,
    remotes: [{ type: 'streamable-http', url }],
    _meta: {
      [PUBLISHER_META]: { [EXTENSION_NAMESPACE]: { [url]: extensionOf(object, annotations, run, warn) } },
    },
  };
  const json = JSON.stringify(document);
  const bytes = Buffer.byteLength(json);
  if (bytes > limits.maxDocumentSize) {
    return refused(`the document has ${bytes} bytes, at most ${limits.maxDocumentSize} are allowed`);
  }
  return { server: { name, json, claims: read.claims }, warnings };
}

interface RunFacts {
  readonly image: string | undefined;
  readonly transport: string | undefined;
  readonly packages: object;
}

/** What an MCPServer runs; of other kinds nothing is read but the metadata. */
function runFacts({ kind, spec }: ClusterObject, url: string): RunFacts {
  if (kind !== 'MCPServer' || !isRecord(spec))
    return { image: undefined, transport: undefined, packages: {} };
  const [image, said, proxied] = ['image', 'transport', 'proxyMode'].map((key) => textOf(spec[key]));
  const transport = said === undefined || said === 'stdio' ? (proxied ?? 'streamable-http') : said;
  if (image === undefined) return { image, transport, packages: {} };
  const { digest, tag } = imageVersion(image);
  const version = digest ?? tag ?? 'latest';
  const packed = { registryType: 'oci', identifier: image, version, transport: { type: transport, url } };
  return { image, transport, packages: { packages: [packed] } };
}

function versionOf(
  annotations: Annotations,
  image: string | undefined,
  warn: (about: string) => void,
): string {
  const given = annotations.text('registry-version');
  if (given !== undefined) {
    if (given.length <= MAX_VERSION && VERSION.test(given)) return given;
    warn('registry-version is no version of three numbers and is ignored');
  }
  const tag = image === undefined ? undefined : imageVersion(image).tag;
  return tag !== undefined && publishedVersionFault(tag) === undefined ? tag : FIRST_VERSION;
}

function iconOf(annotations: Annotations, warn: (about: string) => void): object {
  const src = annotations.text('registry-icon');
  if (src === undefined) return {};
  if (isPlainHttpUrl(src)) return { icons: [{ src }] };
  warn('registry-icon is no http or https URL and is ignored');
  return {};
}

function extensionOf(
  { kind, namespace, name, metadata }: ClusterObject,
  annotations: Annotations,
  { image, transport }: RunFacts,
  warn: (about: string) => void,
): object {
  const kubernetes = { kind, namespace, name, uid: textOf(metadata['uid']), image, transport };
  const category = annotations.text('registry-category');
  const listed = { tools: 'tools', 'tool-definitions': 'tool_definitions' } as const;
  const lists = (['tools', 'tool-definitions'] as const).flatMap((suffix) => {
    const { items, fault } = annotations.list(suffix);
    const isRight = suffix === 'tools' ? isText : isRecord;
    if (items?.every(isRight) === true) return [[listed[suffix], items]];
    const wrong = fault ?? (items === undefined ? undefined : `${suffix} holds something of another type`);
    if (wrong !== undefined) warn(`${wrong} and is ignored`);
    return [];
  });
  return {
    status: 'active',
    ...(category === undefined || category === '' ? {} : { tags: [category.slice(0, MAX_TAG)] }),
    ...Object.fromEntries(lists),
    metadata: { kubernetes },
  };
}

/** Absolute, and without a user or password, which everybody would read. */
function isPlainHttpUrl(text: string): boolean {
  const url = /\s/.test(text) ? undefined : parseHttpUrl(text);
  return url !== undefined && !hasLogin(url);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
