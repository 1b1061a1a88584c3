import { readFile } from 'node:fs/promises';
import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { findServer } from '@skep/core/catalog/find.ts';
import { rankRows } from '@skep/core/catalog/rank.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Client } from '@skep/core/fetch/client.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { AccountSurroundings } from '../account/tokens.ts';
import { loadAppConfig, type AppConfig } from '../config/app-config.ts';
import {
  entriesAt,
  indexWhileReading,
  readIndex,
  type IndexPlace,
  type IndexRow,
} from './catalogue-index.ts';
import { wholeCatalog, type CatalogSource } from './catalog-source.ts';

export interface CatalogOptions {
  readonly config: AppConfig;
  /** Says who asks, where a registry wants to know. */
  readonly around: AccountSurroundings;
  /** Where an index of a large catalogue file is kept; without it, none is. */
  readonly index?: Keeping;
}

interface Keeping {
  readonly cacheDir: string;
  readonly clock: Pick<Clock, 'now'>;
}

const FILE_MS = 30_000;
const API_MS = 10_000;
export const MAX_BYTES = 100 * 1024 * 1024;

/**
 * The one active catalogue: API address, then file address, then file, then the built-in one
 * (docs/behaviour/run.md#catalogues). Nothing is read before it is asked for; what reads files or speaks HTTP is loaded
 * by those that need it.
 */
export async function openCatalog({ config, around, index }: CatalogOptions): Promise<CatalogSource> {
  const client = (timeoutMs: number): Promise<Client> =>
    catalogClient({ config, version: around.program.version }, timeoutMs);
  if (config.registryApiUrl !== undefined) {
    const { apiCatalog } = await import('./api-catalog.ts');
    return apiCatalog(config.registryApiUrl, await signed(await client(API_MS), { config, around }));
  }
  if (config.registryUrl !== undefined) return remoteFile(config.registryUrl, await client(FILE_MS));
  if (config.localRegistryPath !== undefined) {
    const path = config.localRegistryPath;
    return index === undefined
      ? localFile(path)
      : indexedFile(path, { ...index, version: around.program.version });
  }
  return wholeCatalog({ kind: 'built-in', location: '' }, async () => {
    const { starterServers } = await import('@skep/core/catalog/starter.ts');
    return starterServers();
  });
}

/** The client, with which requests say who asks where somebody signed in. What that takes is loaded only then. */
async function signed(client: Client, { config, around }: CatalogOptions): Promise<Client> {
  const { registryApiUrl: address = '', registryAuthServer } = config;
  if (registryAuthServer === undefined && (around.env['SKEP_TOKEN_FILE'] ?? '') === '') return client;
  const { tokensFor } = await import('../account/tokens.ts');
  const tokens = await tokensFor(address, config, around);
  if (tokens === undefined) return client;
  const { signedClient } = await import('../account/signed-client.ts');
  return signedClient(client, address, tokens);
}

/** What asks a catalogue that is elsewhere; to be closed. */
export async function catalogClient(
  { config, version }: { readonly config: AppConfig; readonly version: string },
  timeoutMs = FILE_MS,
): Promise<Client> {
  const { createClient } = await import('@skep/core/fetch/client.ts');
  return createClient({
    timeoutMs,
    maxBytes: MAX_BYTES,
    allowPrivate: config.allowPrivateRegistryIp,
    userAgent: `skep/${version}`,
    tellWhatWasSaid: true,
  });
}

/** As `localFile`, where what was read once is found again without reading all of it; the answers are the same. */
function indexedFile(
  path: string,
  { cacheDir, clock, version }: Keeping & { version: string },
): CatalogSource {
  const place: IndexPlace = { catalogue: path, cacheDir, version };
  const whole = localFile(path, async () => indexWhileReading(place, clock));
  let read: Promise<readonly IndexRow[] | undefined> | undefined;
  const rows = (): Promise<readonly IndexRow[] | undefined> => (read ??= readIndex(place));
  return {
    ...whole,
    async find(name, signal) {
      const row = findServer((await rows()) ?? [], name);
      const [entry] = (row && (await entriesAt([row], place))) ?? [];
      // That there is no such server, the catalogue itself has to say.
      return entry ?? whole.find(name, signal);
    },
    async list({ search, signal }) {
      const known = search === undefined ? undefined : await rows();
      if (known === undefined || search === undefined) return whole.list({ signal });
      const hits = rankRows(known, search, (row) => row);
      return (await entriesAt(hits, place)) ?? whole.list({ signal });
    },
  };
}

type AfterReading = (bytes: Buffer, entries: readonly ServerEntry[]) => Promise<void>;

/** A catalogue file on this machine. */
export function localFile(path: string, follow?: () => Promise<AfterReading>): CatalogSource {
  return wholeCatalog({ kind: 'local file', location: path }, async () => {
    try {
      const whenRead = await follow?.();
      const bytes = await readFile(path);
      const entries = await serversOf(bytes, path);
      await whenRead?.(bytes, entries);
      return entries;
    } catch (error) {
      const errno = errnoOf(error);
      // What is wrong inside the file says so itself, with the place.
      if (error instanceof SkepError || errno === undefined) throw error;
      throw new SkepError('catalog-source/unreachable', {
        message: `the catalogue file "${path}" cannot be read: ${errno}`,
        cause: error,
      });
    }
  });
}

/** A catalogue file at an address. */
export function remoteFile(url: string, client: Client): CatalogSource {
  return wholeCatalog({ kind: 'remote file', location: url }, async (signal) => {
    try {
      return await serversOf((await client.get(url, { signal })).body, url);
    } finally {
      await client.close();
    }
  });
}

async function serversOf(text: Buffer, label: string): Promise<readonly ServerEntry[]> {
  const { readServersQuickly } = await import('@skep/core/catalog/quick-servers.ts');
  const quick = readServersQuickly(text);
  if (quick !== undefined) return quick;
  const { readCatalogue } = await import('@skep/core/catalog/registry-file.ts');
  return readCatalogue(text, { label }).entries.flatMap((entry) => (entry.kind === 'server' ? [entry] : []));
}

/** The catalogue this user has chosen. */
export async function catalogOf(
  around: Required<Pick<AccountSurroundings, 'clock'>> & AccountSurroundings,
): Promise<CatalogSource> {
  const { places, clock } = around;
  const index = { cacheDir: places.cacheDir, clock };
  return openCatalog({ config: await loadAppConfig(places), around, index });
}
