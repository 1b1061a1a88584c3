import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { saidBy, statusOf } from '@skep/core/fetch/client.ts';
import type { RegistryRequest, RegistryServer } from '../account/ask-registry.ts';
import { registryUrl, shownServer, type RegistryAddress } from '../account/registry-address.ts';
import type { Publication } from './document.ts';

/** Claims as a registry takes them. */
export type PublishClaims = Readonly<Record<string, string | readonly string[]>>;

/** Where something is published, and who is asked. */
export interface Door {
  readonly address: RegistryAddress;
  readonly registry: RegistryServer;
  readonly signal: AbortSignal;
}

export type EntryStatus = 'active' | 'deprecated' | 'deleted';

/**
 * Publishes at the door of the registry that the address names, else at that of the whole server; other registries than
 * Skep's have only the former, at the address itself. Resolves to where it went, for people. Fails as `RegistryServer.ask`,
 * and with `publish/refused` in the registry's own words.
 */
export async function publishAt(
  door: Door,
  publication: Publication,
  claims: PublishClaims | undefined,
): Promise<string> {
  const wrapped = wrappedBody(publication, claims);
  // The form that every registry of the official API understands.
  const plain = publication.kind === 'server' && claims === undefined ? publication.text : wrapped;
  const { server, name } = door.address;
  try {
    await ask(door, { method: 'POST', url: `${apiOf(door.address)}/v0.1/publish`, body: plain });
  } catch (error) {
    if (name !== undefined || !isAbsent(error)) throw error;
    await ask(door, { method: 'POST', url: `${server}/v1/entries`, body: wrapped });
  }
  return name === undefined ? shownServer(server) : `${name} at ${shownServer(server)}`;
}

/** The body that doors of Skep's registries take for every kind; the document stands in it byte for byte. */
function wrappedBody({ kind, text }: Publication, claims: PublishClaims | undefined): string {
  return `{"${kind}":${text}${claims === undefined ? '' : `,"claims":${JSON.stringify(claims)}`}}`;
}

/**
 * What a registry of Skep would decide about `publishAt`, which stores nothing; undefined where the registry is another one.
 * Fails as `publishAt`, and with `registry/not-found` where nothing answers as a registry.
 */
export async function decisionAt(
  door: Door,
  publication: Publication,
  claims: PublishClaims | undefined,
): Promise<unknown> {
  const { registry, signal, address } = door;
  const { server, name } = address;
  const query = name === undefined ? '' : `?registry=${encodeURIComponent(name)}`;
  const body = wrappedBody(publication, claims);
  try {
    return await registry.ask({ method: 'POST', url: `${server}/v1/explain${query}`, body, signal });
  } catch (error) {
    if (!hasNoEndpoint(error)) throw asRefusal(error, server);
  }
  const api = apiOf(address);
  try {
    await registry.ask({ url: `${api}/v0.1/servers?limit=1`, signal });
  } catch (error) {
    if (!hasNoEndpoint(error)) throw error;
    throw new SkepError('registry/not-found', {
      message: `there is no registry at ${shownServer(api)}`,
      hint: 'check its address; skep whoami lists the registries that are there',
      cause: error,
    });
  }
  return undefined;
}

/** True where an address does not know what it is asked. */
export function hasNoEndpoint(error: unknown): boolean {
  return [404, 405, 501].includes(statusOf(error) ?? 0) || hasCode(error, 'fetch/not-json');
}

/** Deletes one version. Fails as `publishAt`. */
export async function deleteAt(door: Door, entry: { name: string; version: string }): Promise<void> {
  const path = `${encodeURIComponent(entry.name)}/versions/${encodeURIComponent(entry.version)}`;
  const { server, name } = door.address;
  const url =
    name === undefined
      ? `${server}/v1/entries/server/${path}`
      : `${apiOf(door.address)}/v0.1/servers/${path}`;
  await ask(door, { method: 'DELETE', url });
}

/** Says what one version is, or all where none is named. Fails as `publishAt`. */
export async function markAt(
  door: Door,
  entry: { readonly name: string; readonly version?: string | undefined },
  mark: { readonly status: EntryStatus; readonly statusMessage?: string | undefined },
): Promise<void> {
  const version = entry.version === undefined ? '' : `/versions/${encodeURIComponent(entry.version)}`;
  const url = `${apiOf(door.address)}/v0/servers/${encodeURIComponent(entry.name)}${version}/status`;
  await ask(door, { method: 'PATCH', url, body: JSON.stringify(mark) });
}

function apiOf({ server, name }: RegistryAddress): string {
  return name === undefined ? server : registryUrl(server, name);
}

async function ask({ registry, signal }: Door, request: Omit<RegistryRequest, 'signal'>): Promise<unknown> {
  try {
    return await registry.ask({ ...request, signal });
  } catch (error) {
    throw asRefusal(error, registry.server);
  }
}

/** The registry's own words about what was sent; what it says about who sends is explained already. */
function asRefusal(error: unknown, server: string): unknown {
  const status = statusOf(error);
  if (status === undefined || ![400, 404, 409, 413, 422].includes(status)) return error;
  const said = saidBy(error) ?? `it answered with status ${status}`;
  return new SkepError('publish/refused', {
    message: `${shownServer(server)} does not take it: ${said}`,
    detail: { status },
    cause: error,
    ...(status === 404 && {
      hint: 'check the address of the registry; skep whoami lists the registries that are there',
    }),
  });
}

function isAbsent(error: unknown): boolean {
  return hasCode(error, 'publish/refused') && error.detail['status'] === 404;
}
