import { bytesTag } from '../entity-tag.ts';
import { entryOf, versionsPage } from '../../engine/page.ts';
import { serverName } from '../path-parameters.ts';
import { MAX_LIMIT } from '../query-parameters.ts';
import { registryRoute } from '../registry-route.ts';

/** Specification §2.5.2: an unknown server has an empty list of versions. */
export const listVersions = registryRoute({
  name: 'listServerVersions',
  audit: 'server.versions.list',
  summary: 'List all versions of a server',
  paths: ['/servers/{serverName}/versions'],
  kind: 'server',
  parameters: { serverName },
  query: {},
  replies: {
    200: { description: 'All versions; none when there is no such server', schema: 'ServerList' },
    304: { description: 'The list is still the one that If-None-Match names' },
    400: { description: 'A parameter is invalid', schema: 'Error' },
    404: { description: 'There is no such registry', schema: 'Error' },
  },
  handler: (reader, { serverName: name }) => {
    const pieces = versionsPage('server', entryOf(reader, name), { limit: MAX_LIMIT });
    return { status: 200, etag: bytesTag(pieces), body: () => pieces };
  },
});
