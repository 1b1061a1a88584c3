/** A registry as people write it: the server, and which of its registries, where the address says so. */
export interface RegistryAddress {
  /** Without a slash at its end. */
  readonly server: string;
  /** Of a registry of this server. */
  readonly name?: string;
}

/** `https://host/base/registry/NAME`, with whatever of its API people have copied behind it. */
const OF_REGISTRY = /^(?<base>.*?)\/registry\/(?<name>[^/]+)(?:\/.*)?$/u;

/** Splits an address. Query and fragment are dropped. */
export function splitAddress({ origin, pathname }: URL): RegistryAddress {
  const { base, name } = OF_REGISTRY.exec(pathname)?.groups ?? {};
  if (base === undefined || name === undefined) return { server: origin + pathname.replace(/\/+$/u, '') };
  return { server: origin + base, name: decoded(name) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Where one registry of a server speaks the API. */
export function registryUrl(server: string, name: string): string {
  return `${server}/registry/${encodeURIComponent(name)}`;
}

/** True for the address of a server and all that lies below it. */
export function isAt(address: string, server: string): boolean {
  const [url, base] = [URL.parse(address), URL.parse(server)];
  if (url === null || base === null || url.origin !== base.origin) return false;
  const path = base.pathname.replace(/\/+$/u, '');
  return url.pathname === path || url.pathname.startsWith(`${path}/`);
}

/** For people: host and path. */
export function shownServer(server: string): string {
  const url = URL.parse(server);
  return url === null ? server : url.host + url.pathname.replace(/\/+$/u, '');
}
