import {
  deleteEntryVersion,
  deleteFromRegistry,
  getEntryClaims,
  putEntryClaims,
} from './admin/entries/entry-routes.ts';
import { explainAccess, explainPublish } from './admin/explain/explain-route.ts';
import { OFFICIAL_ROUTES } from './admin/official/official-routes.ts';
import { publish, publishToRegistry } from './admin/publish/publish.ts';
import { REGISTRY_ROUTES } from './admin/registries/registry-routes.ts';
import { SOURCE_ROUTES } from './admin/sources/source-routes.ts';
import { ENTRY_ROUTES } from './reads/read-routes.ts';
import { INTERNAL_ROUTES, me } from './service/service-routes.ts';
import { plainRoute, type Route } from './route/route.ts';
import { loginRoutes, resourceMetadataRoutes } from './service/resource-metadata.ts';

/** Endpoints that work on the store (docs/behaviour/registry.md#admin-api). */
export const ADMIN_ROUTES: readonly Route[] = [
  publishToRegistry,
  deleteFromRegistry,
  ...OFFICIAL_ROUTES,
  publish,
  deleteEntryVersion,
  getEntryClaims,
  putEntryClaims,
  ...SOURCE_ROUTES,
  ...REGISTRY_ROUTES,
  explainAccess,
  explainPublish,
];

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
  ...ENTRY_ROUTES,
  me,
  openApi,
  ...resourceMetadataRoutes,
  ...loginRoutes,
  ...INTERNAL_ROUTES,
];

/** Every endpoint. What is not in here is answered with 404, another method on a path in here with 405. */
export const ROUTES: readonly Route[] = [...READ_ROUTES, ...ADMIN_ROUTES];
