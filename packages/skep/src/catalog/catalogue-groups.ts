import { openDocument } from '@skep/core/catalog/catalogue-document.ts';
import { detectFormat } from '@skep/core/catalog/catalogue-format.ts';
import { nativeGroup, type CatalogueGroup } from '@skep/core/catalog/native-group.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readBytes } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import { quoted } from '../run-config/group-file.ts';
import type { AppConfig } from '../config/app-config.ts';
import { catalogClient, MAX_BYTES } from './open-catalog.ts';

interface Asking {
  readonly config: AppConfig;
  /** For the User-Agent. */
  readonly version: string;
  readonly signal: AbortSignal;
}

/** More than anybody runs at once. */
const MAX_SERVERS = 50;

/**
 * The groups of the active catalogue (docs/behaviour/run.md#groups-of-a-catalogue). Only ToolHive's older file format has
 * any. Fails as reading the catalogue does.
 */
export async function catalogueGroups(asking: Asking): Promise<readonly CatalogueGroup[]> {
  const { registryApiUrl, registryUrl, localRegistryPath } = asking.config;
  // The first of the three is the active one.
  if (registryApiUrl !== undefined) return [];
  if (registryUrl !== undefined) return groupsIn(await download(registryUrl, asking), registryUrl);
  if (localRegistryPath === undefined) return [];
  const bytes = await readBytes(localRegistryPath, { maxBytes: MAX_BYTES, what: 'catalogue file' });
  return groupsIn(bytes, localRegistryPath);
}

/** Fails with `target/not-found`, and with `catalog/wrong-shape` for a group of nothing or of too much. */
export async function findCatalogueGroup(name: string, asking: Asking): Promise<CatalogueGroup> {
  const groups = await catalogueGroups(asking);
  const group = groups.find((one) => one.name === name);
  if (group === undefined) {
    const otherwise = groups.length === 0 ? 'the catalogue has no groups' : 'see the catalogue';
    throw new SkepError('target/not-found', {
      message: `group "${name.slice(0, 100)}" not found in the catalogue`,
      hint: suggestion(
        name,
        groups.map((one) => one.name),
        otherwise,
      ),
    });
  }
  const { length } = group.servers;
  if (length > 0 && length <= MAX_SERVERS) return group;
  throw new SkepError('catalog/wrong-shape', {
    message: `group "${name}" of the catalogue has ${length} servers`,
    hint: `a group of 1 to ${MAX_SERVERS} can be run at once`,
  });
}

/** What is thrown for a server that is not in the catalogue, whose name a group there has: how to run that. */
export async function hintAtGroup(error: unknown, name: string, asking: Asking): Promise<never> {
  if (
    hasCode(error, 'target/not-found') &&
    (await catalogueGroups(asking)).some((one) => one.name === name)
  ) {
    const hint = `it is a group of the catalogue: run its servers with skep group run ${quoted(name)}`;
    throw new SkepError(error.code, { message: error.message, hint, cause: error });
  }
  throw error;
}

async function download(url: string, { config, version, signal }: Asking): Promise<Buffer> {
  const client = await catalogClient({ config, version });
  try {
    return (await client.get(url, { signal })).body;
  } finally {
    await client.close();
  }
}

function groupsIn(bytes: Buffer, label: string): readonly CatalogueGroup[] {
  const document = openDocument(bytes, label);
  if (!isRecord(document.frame) || detectFormat(document.frame) !== 'toolhive-native') return [];
  const values = [...document.elements(document.frame['groups'])].map(({ value }) => nativeGroup(value));
  return values.filter((group) => group !== undefined);
}
