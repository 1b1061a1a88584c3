import { changeServerStatus, changeVersionStatus } from './official/change-status.ts';
import { publishOfficial } from './official/publish-official.ts';
import { validateOfficial } from './official/validate-official.ts';
import type { Route } from '../route/route.ts';
import { deleteEntryVersion, deleteFromRegistry } from './entries/delete-version.ts';
import { getEntryClaims, putEntryClaims } from './entries/entry-claims.ts';
import { explainAccess } from './explain/explain-route.ts';
import { publish, publishToRegistry } from './publish/publish.ts';
import { REGISTRY_ROUTES } from './registries/registry-routes.ts';
import { SOURCE_ROUTES } from './sources/source-routes.ts';

/** Endpoints that work on the store (docs/behaviour/registry.md#admin-api). */
export const ADMIN_ROUTES: readonly Route[] = [
  publishToRegistry,
  deleteFromRegistry,
  ...publishOfficial,
  ...validateOfficial,
  ...changeVersionStatus,
  ...changeServerStatus,
  publish,
  deleteEntryVersion,
  getEntryClaims,
  putEntryClaims,
  ...SOURCE_ROUTES,
  ...REGISTRY_ROUTES,
  explainAccess,
];
