import { readFile } from 'node:fs/promises';
import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Client } from '@skep/core/fetch/client.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Places } from '@skep/core/files/places.ts';
import { loadAppConfig, type AppConfig } from '../config/app-config.ts';
import { wholeCatalog, type CatalogSource } from './catalog-source.ts';

export interface CatalogOptions {
  readonly config: AppConfig;
  /** For the User-Agent. */
  readonly version: string;
}

const FILE_MS = 30_000;
const API_MS = 10_000;
const MAX_BYTES = 100 * 1024 * 1024;

/**
 * The one active catalogue: API address, then file address, then file, then the built-in one
 * (docs/behaviour/run.md#catalogues). Nothing is read before it is asked for; what reads files or speaks HTTP is loaded
 * by those that need it.
 */
export async function openCatalog({ config, version }: CatalogOptions): Promise<CatalogSource> {
  const client = async (timeoutMs: number): Promise<Client> => {
    const { createClient } = await import('@skep/core/fetch/client.ts');
    return createClient({
      timeoutMs,
      maxBytes: MAX_BYTES,
      allowPrivate: config.allowPrivateRegistryIp,
      userAgent: `skep/${version}`,
      tellWhatWasSaid: true,
    });
  };
  if (config.registryApiUrl !== undefined) {
    const { apiCatalog } = await import('./api-catalog.ts');
    return apiCatalog(config.registryApiUrl, await client(API_MS));
  }
  if (config.registryUrl !== undefined) return remoteFile(config.registryUrl, await client(FILE_MS));
  if (config.localRegistryPath !== undefined) return localFile(config.localRegistryPath);
  return wholeCatalog({ kind: 'built-in', location: '' }, async () => {
    const { starterServers } = await import('@skep/core/catalog/starter.ts');
    return starterServers();
  });
}

/** A catalogue file on this machine. */
export function localFile(path: string): CatalogSource {
  return wholeCatalog({ kind: 'local file', location: path }, async () => {
    try {
      return await serversOf(await readFile(path), path);
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

interface CatalogUser {
  readonly places: Places;
  readonly program: { readonly version: string };
}

/** The catalogue this user has chosen. */
export async function catalogOf({ places, program }: CatalogUser): Promise<CatalogSource> {
  return openCatalog({ config: await loadAppConfig(places), version: program.version });
}
