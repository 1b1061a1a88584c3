import { decideRead } from '../../../access/admin-scope.ts';
import { storedClaims } from '../../../access/stored-claims.ts';
import type { StoredEntry, StoredRegistry, StoredVersion } from '../../../store/rows.ts';
import { type AdminCall, adminRoute, jsonAnswer } from '../admin-route.ts';
import { claimsMember, entryHead, versionHead } from '../entry-rows.ts';
import { compareKeys, pageCursor, pageLimit, pageOf, type SortKey } from '../paging.ts';
import { resourceName } from '../resource-name.ts';
import { registryInfoFor } from './registry-info.ts';
import { visibleRegistry } from './visible-registry.ts';

const NOT_FOUND = { description: 'There is no such registry for this caller', schema: 'Error' } as const;
const BAD_REQUEST = { description: 'A parameter is invalid', schema: 'Error' } as const;

/** Needs no role (specification §0, D12); a row whose claims the caller does not satisfy is left out. */
export const listRegistries = adminRoute({
  method: 'GET',
  paths: ['/v1/registries'],
  access: 'signed-in',
  name: 'listRegistries',
  audit: 'registry.list',
  summary: 'List the registries that the caller may see',
  parameters: {},
  query: { limit: pageLimit, cursor: pageCursor },
  replies: { 200: { description: 'Registries by name', schema: 'RegistryList' }, 400: BAD_REQUEST },
  handler: async (call, _, query) => {
    const registries = await call.store.listRegistries();
    const readable = registries.filter(
      ({ claims }) => decideRead(call.authority, storedClaims(claims)).allowed,
    );
    const { items, ...next } = pageOf(readable, ({ name }) => [name], query);
    const info = await registryInfoFor(call);
    return jsonAnswer(200, { registries: items.map(info), ...next });
  },
});

export const getRegistry = adminRoute({
  method: 'GET',
  paths: ['/v1/registries/{name}'],
  access: 'signed-in',
  name: 'getRegistry',
  audit: 'registry.read',
  summary: 'Read a registry',
  parameters: { name: resourceName },
  query: {},
  replies: {
    200: { description: 'The registry', schema: 'RegistryInfo' },
    400: BAD_REQUEST,
    404: NOT_FOUND,
  },
  handler: async (call, { name }) => {
    const registry = await visibleRegistry(call, name);
    const info = await registryInfoFor(call);
    return jsonAnswer(200, info(registry));
  },
});

/** One row per version and source, never shadowed (specification §2.6.2). */
export const listRegistryEntries = adminRoute({
  method: 'GET',
  paths: ['/v1/registries/{name}/entries'],
  access: { role: 'manageRegistries' },
  name: 'listRegistryEntries',
  audit: 'registry.entries.list',
  summary: 'List everything the sources of a registry hold',
  parameters: { name: resourceName },
  query: { limit: pageLimit, cursor: pageCursor },
  replies: {
    200: { description: 'Versions by name, version and position of the source', schema: 'RegistryEntries' },
    400: BAD_REQUEST,
    404: NOT_FOUND,
  },
  handler: async (call, { name }, query) => {
    const rows = await linkedVersions(call, await visibleRegistry(call, name));
    const { items, ...next } = pageOf(rows, keyOf, query);
    const entries = items.map(({ entry, version, sourceName, position }) => ({
      ...entryHead(entry),
      ...versionHead(version),
      ...claimsMember(entry),
      sourceName,
      position,
    }));
    return jsonAnswer(200, { entries, ...next });
  },
});

interface LinkedVersion {
  readonly entry: StoredEntry;
  readonly version: StoredVersion;
  readonly sourceName: string;
  /** Of the source in the registry; 0 is the highest priority. */
  readonly position: number;
}

async function linkedVersions(call: AdminCall, { sources }: StoredRegistry): Promise<LinkedVersion[]> {
  const perSource = await Promise.all(sources.map((source) => call.store.readEntries(source)));
  return perSource
    .flatMap((entries, position) =>
      entries.flatMap((entry) =>
        entry.versions.map((version) => ({ entry, version, sourceName: sources[position] ?? '', position })),
      ),
    )
    .toSorted((a, b) => compareKeys(keyOf(a), keyOf(b)));
}

/** Kind and namespace come last: they only tell apart what is otherwise equal. */
function keyOf({ entry, version, position }: LinkedVersion): SortKey {
  return [entry.name, version.version, String(position).padStart(6, '0'), entry.kind, entry.namespace];
}
