import { decideRead } from '../../../access/admin-scope.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import type { VersionPlace } from '../../../store/reads/listed-entries.ts';
import type { ListedVersion, StoredRegistry } from '../../../store/rows.ts';
import { type AdminCall, adminRoute, jsonAnswer } from '../admin-route.ts';
import { entryMembers, versionMembers } from '../entry-rows.ts';
import { compareKeys, pageCursor, pageLimit, pageOf, type PageQuery, type SortKey } from '../paging.ts';
import { resourceName, visibleRegistry } from '../resource.ts';
import { registryInfoFor } from './registry-info.ts';

const NOT_FOUND = 'There is no such registry for this caller';
const BAD_REQUEST = 'A parameter is invalid';

/** Needs no role; a row whose claims the caller does not satisfy is left out. */
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

/** One row per version and source, never shadowed (docs/behaviour/registry.md#registries-over-the-api). */
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
    const rows = await linkedVersions(call, await visibleRegistry(call, name), query);
    const { items, ...next } = pageOf(rows, keyOf, query);
    const entries = items.map(({ version, sourceName, position }) => ({
      ...entryMembers(version),
      ...versionMembers(version),
      sourceName,
      position,
    }));
    return jsonAnswer(200, { entries, ...next });
  },
});

interface LinkedVersion {
  readonly version: ListedVersion;
  readonly sourceName: string;
  /** Of the source in the registry; 0 is the highest priority. */
  readonly position: number;
}

/** Of each source as many as a page takes, and one more, which tells that there is another page. */
async function linkedVersions(
  { store }: AdminCall,
  { sources }: StoredRegistry,
  { limit, cursor }: PageQuery,
): Promise<LinkedVersion[]> {
  const perSource = await Promise.all(
    sources.map((source, position) =>
      store.listVersions(source, {
        after: cursor && placeIn(position, cursor),
        limit: limit === undefined ? undefined : limit + 1,
      }),
    ),
  );
  return perSource
    .flatMap((versions, position) =>
      versions.map((version) => ({ version, sourceName: sources[position] ?? '', position })),
    )
    .toSorted((a, b) => compareKeys(keyOf(a), keyOf(b)));
}

/** Behind every kind. */
const LAST_KIND = '~';

/** Where a source goes on: what is of the same name and version comes by the position of its source. */
function placeIn(position: number, cursor: SortKey): VersionPlace {
  const [name = '', version = '', reached = '', kind = '', namespace = ''] = cursor;
  const own = positionKey(position);
  if (own === reached) return { name, version, kind, namespace };
  return { name, version, kind: own < reached ? LAST_KIND : '', namespace: '' };
}

/** Kind and namespace come last: they only tell apart what is otherwise equal. */
function keyOf({ version: { name, version, kind, namespace }, position }: LinkedVersion): SortKey {
  return [name, version, positionKey(position), kind, namespace];
}

function positionKey(position: number): string {
  return String(position).padStart(6, '0');
}
