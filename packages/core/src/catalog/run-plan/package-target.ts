import type { ServerPackage } from '../server-json.ts';

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

const NPM_NAME = /^(?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/;
const PYPI_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const VERSION = /^[A-Za-z0-9][A-Za-z0-9.+_!-]*$/;
/** OCI distribution references: no white space, nothing a shell or flag parser would read as more than a name. */
const IMAGE = /^[a-zA-Z0-9][a-zA-Z0-9._/:@-]*$/;

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

function named(ecosystem: 'npm' | 'pypi', name: RegExp, entry: ServerPackage): TargetOrFault {
  const { identifier, version, registryBaseUrl } = entry;
  if (!name.test(identifier) || identifier.length > 214) {
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
  switch (entry.registryType) {
    case 'oci':
      return imageTarget(entry);
    case 'npm':
      return named('npm', NPM_NAME, entry);
    case 'pypi':
      return named('pypi', PYPI_NAME, entry);
    default:
      return { fault: `packages of type "${entry.registryType}" are not supported` };
  }
}
