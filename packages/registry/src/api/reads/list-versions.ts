import { entryOf, versionsPage } from '../../engine/page.ts';
import { serverName } from '../route/path-parameters.ts';
import { cursor, versionsLimit } from '../route/query-parameters.ts';
import { registryRoute } from './registry-route.ts';
import { pageAnswer } from './list-answer.ts';

/** An unknown server has an empty list of versions (docs/behaviour/registry.md#consumer-api). */
export const listVersions = registryRoute({
  name: 'listServerVersions',
  audit: 'server.versions.list',
  summary: 'List all versions of a server',
  paths: ['/servers/{serverName}/versions'],
  kind: 'server',
  parameters: { serverName },
  query: { cursor, limit: versionsLimit },
  replies: {
    200: { description: 'A page of versions; none when there is no such server', schema: 'ServerList' },
    304: { description: 'The list is still the one that If-None-Match names' },
    400: 'A parameter is invalid',
    404: 'There is no such registry',
  },
  handler: (reader, { serverName: name }, { limit, cursor: after }) => {
    const range = { limit, ...(after === undefined ? {} : { after }) };
    return pageAnswer(versionsPage('server', entryOf(reader, name), range));
  },
});
