import type { PageQuery } from '../../engine/page-walk.ts';
import { cursor, limit, search, updatedSince, versionFilter } from '../route/query-parameters.ts';
import { registryRoute } from './registry-route.ts';
import { listAnswer } from './list-answer.ts';

/** Lists the servers that the caller sees (docs/behaviour/registry.md#consumer-api). */
export const listServers = registryRoute({
  name: 'listServers',
  audit: 'server.list',
  summary: 'List the servers of a registry, one item per version',
  paths: ['/servers'],
  kind: 'server',
  parameters: {},
  query: { cursor, limit, search, updated_since: updatedSince, version: versionFilter },
  replies: {
    200: { description: 'A page of servers', schema: 'ServerList' },
    304: { description: 'The page is still the one that If-None-Match names' },
    400: 'A parameter is invalid',
    404: 'There is no such registry',
  },
  handler: (reader, _, query, caller) => {
    const page: PageQuery = {
      limit: query.limit,
      ...(query.cursor === undefined ? {} : { after: query.cursor }),
      ...(query.search === undefined ? {} : { search: query.search }),
      ...(query.updated_since === undefined ? {} : { updatedSince: query.updated_since }),
      ...(query.version === undefined ? {} : { version: query.version }),
    };
    return listAnswer(reader, page, caller);
  },
});
