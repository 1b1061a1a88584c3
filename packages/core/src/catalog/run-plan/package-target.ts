import type { ServerPackage } from '../server-json.ts';
import { fill, requirementOf } from './requirement.ts';

/** What a package entry runs, without the `registryBaseUrl` that says where to download it. */
export type PackageTarget =
  | { readonly kind: 'image'; readonly reference: string }
  | {
      readonly kind: 'package';
      readonly ecosystem: 'npm' | 'pypi';
      readonly name: string;
      readonly version?: string;
      /** As the entry states it; a registry other than the configured one must not be replaced silently. */
      readonly registryBaseUrl?: string;
    };

export type TargetOrFault = { readonly target: PackageTarget } | { readonly fault: string };

const NAMES = {
  npm: /^(?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/,
  pypi: /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/,
} as const;
const VERSION = /^[A-Za-z0-9][A-Za-z0-9.+_!-]*$/;
/** OCI distribution references: no white space or address, nothing a shell or flag parser would read as more than a name. */
const IMAGE = /^(?!.*\/\/)[a-zA-Z0-9][a-zA-Z0-9._/:@-]*$/;

/** Docker Hub's names; its images are written without a host. */
const HUB = new Set([
  'docker.io',
  'index.docker.io',
  'registry-1.docker.io',
  'hub.docker.com',
  'registry.hub.docker.com',
]);

function hostOf(url: string | null | undefined): string | undefined {
  return url && URL.canParse(url) ? new URL(url).host : undefined;
}

/** True for `ghcr.io/x`, `localhost:5000/x`: the first part is a host when it has a dot or port or is localhost. */
function hasHost(identifier: string): boolean {
  const slash = identifier.indexOf('/');
  const first = identifier.slice(0, Math.max(slash, 0));
  return /[.:]/.test(first) || first === 'localhost';
}

function hasTagOrDigest(identifier: string): boolean {
  return identifier.includes('@') || identifier.lastIndexOf(':') > identifier.lastIndexOf('/');
}

/** Entries before October 2025 split an image into base URL, identifier and version. */
function imageTarget({ identifier, version, registryBaseUrl }: ServerPackage): TargetOrFault {
  const host = hostOf(registryBaseUrl);
  const located =
    host === undefined || HUB.has(host) || hasHost(identifier) ? identifier : `${host}/${identifier}`;
  const reference = version && !hasTagOrDigest(located) ? `${located}:${version}` : located;
  return IMAGE.test(reference)
    ? { target: { kind: 'image', reference } }
    : { fault: `"${reference}" is no image reference` };
}

function named(ecosystem: 'npm' | 'pypi', entry: ServerPackage): TargetOrFault {
  const { identifier, version, registryBaseUrl } = entry;
  if (!NAMES[ecosystem].test(identifier) || identifier.length > 214) {
    return { fault: `"${identifier}" is no ${ecosystem} package name` };
  }
  if (version && !VERSION.test(version)) return { fault: `"${version}" is no exact version` };
  return {
    target: {
      kind: 'package',
      ecosystem,
      name: identifier,
      ...(version && version !== 'latest' ? { version } : {}),
      ...(registryBaseUrl ? { registryBaseUrl } : {}),
    },
  };
}

/** The image or package an entry of `packages` names, or why Skep cannot run it. */
export function packageTarget(entry: ServerPackage): TargetOrFault {
  const { registryType: type } = entry;
  if (type === 'oci') return imageTarget(entry);
  return type === 'npm' || type === 'pypi'
    ? named(type, entry)
    : { fault: `packages of type "${type}" are not supported` };
}

export type Transport = 'stdio' | 'sse' | 'streamable-http';

/** How a packaged server is spoken to. `port` and `path` are where it listens, when the entry says so. */
interface PlannedTransport {
  readonly transport: Transport;
  readonly port?: number;
  readonly path?: string;
}

export function isTransport(type: string): type is Transport {
  return type === 'stdio' || type === 'sse' || type === 'streamable-http';
}

/** Template variables of a package's URL name its arguments, their hints, or its environment variables. */
function packageValue(entry: ServerPackage, key: string): string | undefined {
  const argument = entry.packageArguments?.find(({ name, valueHint }) =>
    [name, valueHint, name?.replace(/^-+/, '')].includes(key),
  );
  if (argument !== undefined) return requirementOf(key, argument).default;
  const variable = entry.environmentVariables?.find(({ name }) => name === key);
  return variable === undefined ? undefined : requirementOf(key, variable).default;
}

/** Reads `transport` of a package, absent meaning stdio, or says what is wrong with it. */
export function planTransport(entry: ServerPackage): PlannedTransport | { readonly fault: string } {
  const { type = 'stdio', url } = entry.transport ?? {};
  if (!isTransport(type)) return { fault: `the transport "${type}" is not supported` };
  if (type === 'stdio' || !url) return { transport: type };
  const filled = fill(url, (key) => packageValue(entry, key)).text;
  // A port that is still open must not make the rest of the URL unreadable.
  const readable = filled.replace(/:\{[^{}]*\}/, '');
  if (!URL.canParse(readable)) return { transport: type };
  const { port, pathname } = new URL(readable);
  return {
    transport: type,
    ...(port === '' ? {} : { port: Number(port) }),
    ...(pathname === '/' ? {} : { path: decodePath(pathname) }),
  };
}

/** Braces of an open variable come out of the URL parser percent-encoded. */
function decodePath(pathname: string): string {
  return pathname.replaceAll('%7B', '{').replaceAll('%7D', '}');
}
