import { decideRead } from '../../../access/admin-scope.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import { adminRoute, jsonAnswer } from '../admin-route.ts';
import { entriesAfter, entryKey, entryMembers, versionMembers } from '../entry-rows.ts';
import { pageCursor, pageLimit, pageOf } from '../paging.ts';
import { resourceName, visibleSource } from '../resource.ts';
import { sourceInfo } from './source-info.ts';

const access = { role: 'manageSources' } as const;

const NOT_FOUND = 'There is no such source for this caller';
const BAD_REQUEST = 'A parameter is invalid';

/** A row (docs/behaviour/registry.md#administration) whose claims the caller does not satisfy is left out. */
export const listSources = adminRoute({
  method: 'GET',
  paths: ['/v1/sources'],
  access,
  name: 'listSources',
  audit: 'source.list',
  summary: 'List the sources that the caller may see',
  parameters: {},
  query: { limit: pageLimit, cursor: pageCursor },
  replies: { 200: { description: 'Sources by name', schema: 'SourceList' }, 400: BAD_REQUEST },
  handler: async (call, _, query) => {
    const [sources, statuses] = await Promise.all([call.store.listSources(), call.store.readStatuses()]);
    const readable = sources.filter(({ claims }) => decideRead(call.authority, storedClaims(claims)).allowed);
    const { items, ...next } = pageOf(readable, ({ name }) => [name], query);
    return jsonAnswer(200, {
      sources: items.map((source) => sourceInfo(source, statuses.get(source.name))),
      ...next,
    });
  },
});

export const getSource = adminRoute({
  method: 'GET',
  paths: ['/v1/sources/{name}'],
  access,
  name: 'getSource',
  audit: 'source.read',
  summary: 'Read a source',
  parameters: { name: resourceName },
  query: {},
  replies: {
    200: { description: 'The source and how its synchronisation is doing', schema: 'SourceInfo' },
    400: BAD_REQUEST,
    404: NOT_FOUND,
  },
  handler: async (call, { name }) => {
    const source = await visibleSource(call, name);
    return jsonAnswer(200, sourceInfo(source, await call.store.readStatus(name)));
  },
});

/** Grouped, never shadowed, and not filtered by the claims of entries. */
export const listSourceEntries = adminRoute({
  method: 'GET',
  paths: ['/v1/sources/{name}/entries'],
  access,
  name: 'listSourceEntries',
  audit: 'source.entries.list',
  summary: 'List everything a source holds',
  parameters: { name: resourceName },
  query: { limit: pageLimit, cursor: pageCursor },
  replies: {
    200: {
      description: 'Entries by type, namespace and name, each with its versions',
      schema: 'SourceEntries',
    },
    400: BAD_REQUEST,
    404: NOT_FOUND,
  },
  handler: async (call, { name }, query) => {
    await visibleSource(call, name);
    const entries = await entriesAfter(call.store, name, query);
    const { items, ...next } = pageOf(entries, entryKey, query);
    const rows = items.map((entry) => ({
      ...entryMembers(entry),
      versions: entry.versions.map(versionMembers),
    }));
    return jsonAnswer(200, { entries: rows, ...next });
  },
});
