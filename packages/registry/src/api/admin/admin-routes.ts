import { changeServerStatus, changeVersionStatus } from './official/change-status.ts';
import { publishOfficial } from './official/publish-official.ts';
import { validateOfficial } from './official/validate-official.ts';
import type { Route } from '../route/route.ts';
import { deleteRegistry, deleteSource } from './delete-resource.ts';
import { deleteEntryVersion, deleteFromRegistry } from './entries/delete-version.ts';
import { getEntryClaims, putEntryClaims } from './entries/entry-claims.ts';
import { explainAccess } from './explain/explain-route.ts';
import { publish, publishToRegistry } from './publish/publish.ts';
import { putRegistry } from './registries/put-registry.ts';
import { getRegistry, listRegistries, listRegistryEntries } from './registries/read-registries.ts';
import { putSource } from './sources/put-source.ts';
import { getSource, listSourceEntries, listSources } from './sources/read-sources.ts';
import { getSync, startSync } from './sources/sync-source.ts';

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
  listSources,
  getSource,
  listSourceEntries,
  putSource,
  deleteSource,
  startSync,
  getSync,
  listRegistries,
  getRegistry,
  listRegistryEntries,
  putRegistry,
  deleteRegistry,
  explainAccess,
];
