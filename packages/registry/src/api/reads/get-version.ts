import { SkepError } from '@skep/core/errors/skep-error.ts';
import { entryOf, versionPage } from '../../engine/page.ts';
import { serverName, versionName } from '../route/path-parameters.ts';
import { registryRoute } from './registry-route.ts';
import { pageAnswer } from './list-answer.ts';

/** What the caller may not see does not exist. */
export const getVersion = registryRoute({
  name: 'getServerVersion',
  audit: 'server.version.read',
  summary: 'Get one version of a server',
  paths: ['/servers/{serverName}/versions/{version}'],
  kind: 'server',
  parameters: { serverName, version: versionName },
  query: {},
  replies: {
    200: { description: 'The server', schema: 'ServerItem' },
    304: { description: 'The server is still the one that If-None-Match names' },
    400: 'A parameter is invalid',
    404: 'There is no such registry, server or version',
  },
  handler: (reader, { serverName: name, version }) => {
    const entry = entryOf(reader, name);
    const page = entry === undefined ? undefined : versionPage(entry, version);
    if (page === undefined) throw new SkepError('registry/not-found');
    return pageAnswer(page);
  },
});
