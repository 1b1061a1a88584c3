import { ADMIN_ROUTES } from './admin/admin-routes.ts';
import { BUNDLE_ROUTES } from './consumer/bundles.ts';
import { getVersion } from './consumer/get-version.ts';
import { listServers } from './consumer/list-servers.ts';
import { listVersions } from './consumer/list-versions.ts';
import { INTERNAL_ROUTES } from './internal/internal-routes.ts';
import { me } from './me.ts';
import { plainRoute, type Route } from './route.ts';
import { resourceMetadataRoutes } from './resource-metadata.ts';

const openApi = plainRoute({
  listener: 'public',
  name: 'openApi',
  summary: 'This document',
  path: '/openapi.json',
  replies: { 200: { description: 'An OpenAPI 3.1 document', schema: 'OpenApi' } },
  handler: ({ openApi: text }) => ({ status: 200, body: text }),
});

/** What is read from the snapshot or needs no store. */
export const READ_ROUTES: readonly Route[] = [
  listServers,
  listVersions,
  getVersion,
  ...BUNDLE_ROUTES,
  me,
  openApi,
  ...resourceMetadataRoutes,
  ...INTERNAL_ROUTES,
];

/** Every endpoint. What is not in here is answered with 404, another method on a path in here with 405. */
export const ROUTES: readonly Route[] = [...READ_ROUTES, ...ADMIN_ROUTES];
