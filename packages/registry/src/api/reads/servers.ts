import { versionsPage } from '../../engine/page.ts';
import {
  serverName,
  versionName,
  cursor,
  limit,
  search,
  updatedSince as updatedSinceTime,
  versionFilter,
  versionsLimit,
} from '../route/parameter.ts';
import { registryRoute } from './registry-route.ts';
import { listAnswer, pageAnswer, versionAnswer } from './list-answer.ts';

/** Lists the servers that the caller sees (docs/behaviour/registry.md#consumer-api). */
export const listServers = registryRoute({
  name: 'listServers',
  audit: 'server.list',
  summary: 'List the servers of a registry, one item per version',
  paths: ['/servers'],
  kind: 'server',
  parameters: {},
  query: { cursor, limit, search, updated_since: updatedSinceTime, version: versionFilter },
  replies: ['A page of servers', 'ServerList', 'There is no such registry'],
  handler: (reader, _, { cursor: after, updated_since: updatedSince, ...query }, caller) =>
    listAnswer(reader, { after, updatedSince, ...query }, caller),
});

/** What the caller may not see does not exist. */
export const getVersion = registryRoute({
  name: 'getServerVersion',
  audit: 'server.version.read',
  summary: 'Get one version of a server',
  paths: ['/servers/{serverName}/versions/{version}'],
  kind: 'server',
  parameters: { serverName, version: versionName },
  query: {},
  replies: ['The server', 'ServerItem', 'There is no such registry, server or version'],
  handler: (reader, { serverName: name, version }) => versionAnswer(reader, name, version),
});

/** An unknown server has an empty list of versions (docs/behaviour/registry.md#consumer-api). */
export const listVersions = registryRoute({
  name: 'listServerVersions',
  audit: 'server.versions.list',
  summary: 'List all versions of a server',
  paths: ['/servers/{serverName}/versions'],
  kind: 'server',
  parameters: { serverName },
  query: { cursor, limit: versionsLimit },
  replies: [
    'A page of versions; none when there is no such server',
    'ServerList',
    'There is no such registry',
  ],
  handler: (reader, { serverName: name }, { limit, cursor: after }) =>
    pageAnswer(versionsPage(reader, name, { limit, after })),
});
