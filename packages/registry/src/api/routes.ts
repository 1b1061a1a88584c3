import { ADMIN_ROUTES } from './admin/admin-routes.ts';
import { BUNDLE_ROUTES } from './reads/bundles.ts';
import { listServers, getVersion, listVersions } from './reads/servers.ts';
import { INTERNAL_ROUTES, me } from './service/service-routes.ts';
import { plainRoute, type Route } from './route/route.ts';
import { resourceMetadataRoutes } from './service/resource-metadata.ts';

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
