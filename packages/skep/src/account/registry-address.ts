import { SkepError } from '@skep/core/errors/skep-error.ts';
import { hasLogin, parseHttpUrl } from '@skep/core/fetch/http-url.ts';
import { redactUrl } from '@skep/core/log/redact.ts';

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

/**
 * The address of a registry as somebody gave it. Fails with `usage/invalid-value`, also where it holds a login: that would be kept
 * in the configuration, and no registry is asked with it.
 */
export function registryAddressIn(text: string): URL {
  const url = parseHttpUrl(text);
  if (url !== undefined && !hasLogin(url)) return url;
  if (url !== undefined) throw loginInAddress(text);
  throw new SkepError('usage/invalid-value', {
    message: `invalid address of a registry: "${redactUrl(text)}"`,
    hint: 'give an http or https address',
  });
}

export function loginInAddress(text: string): SkepError {
  return new SkepError('usage/invalid-value', {
    message: `the address holds a login: "${redactUrl(text)}"`,
    hint: 'give the address alone; skep login asks the identity provider',
  });
}

/** Fails with `catalog-source/refused` for plain http that nobody has allowed. `use` is what the address is for, for people. */
export function refuseClear({ protocol, href }: URL, use: string, isAllowed: boolean): void {
  if (protocol === 'https:' || isAllowed) return;
  throw new SkepError('catalog-source/refused', {
    message: `plain http is not safe for ${use}: "${redactUrl(href)}"`,
  });
}
