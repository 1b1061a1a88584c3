import { SkepError } from '@skep/core/errors/skep-error.ts';
import { exactClaims } from '../../../access/claim-set.ts';
import { coversNew, enforce } from '../../../access/decision.ts';
import { isAllowedPath } from '../../../sources/allowed-path.ts';
import { decodeSource } from '../../../sources/open-source.ts';
import { withoutUrlSecrets } from '../../../sources/url-secrets.ts';
import type { SourceFacts } from '../../../store/decisions.ts';
import { isSynced, type SourceSettings, type StoredSource } from '../../../store/rows.ts';
import { badRequest } from '../../route/parameter.ts';
import type { Answer, Route } from '../../route/route.ts';
import { adminRoute, jsonAnswer, type AdminCall } from '../admin-route.ts';
import { SOURCE_BODY } from '../bodies.ts';
import { pageOf, entriesAfter, entryKey, entryMembers, versionMembers } from '../listings.ts';
import { resourceRoutes, visibleRow, type ResourceKind } from '../resource-routes.ts';
import { enforceUpdate, requireNewName, resourceName, unknownResource } from '../resource.ts';
import { sourceInfo, syncStatusInfo } from './source-info.ts';

const SOURCES: ResourceKind<StoredSource, SourceSettings> = {
  what: 'source',
  many: 'sources',
  id: 'Source',
  ids: 'Sources',
  role: 'manageSources',
  readers: { role: 'manageSources' },
  summaries: { entries: 'List everything a source holds', delete: 'Delete a source and its entries' },
  replies: {
    get: 'The source and how its synchronisation is doing',
    entries: 'Entries by type, namespace and name, each with its versions',
    put: {
      400: 'The name or body is invalid, or the source would become another kind',
      403: 'It is from the configuration file, or the caller lacks a claim',
      409: 'There is a managed source already',
    },
    delete: { 409: 'Registries list it' },
  },
  body: SOURCE_BODY,
  list: ({ store }) => store.listSources(),
  read: ({ store }, name) => store.readSource(name),
  show: async ({ store }, name) => {
    const statuses =
      name === undefined ? await store.readStatuses() : new Map([[name, await store.readStatus(name)]]);
    return (source) => sourceInfo(source, statuses.get(source.name));
  },
  // Grouped, never shadowed, and not filtered by the claims of entries.
  entries: async ({ store }, { name }, query) => {
    const { items, ...next } = pageOf(await entriesAfter(store, name, query), entryKey, query);
    const shown = items.map((entry) => ({
      ...entryMembers(entry),
      versions: entry.versions.map(versionMembers),
    }));
    return { items: shown, ...next };
  },
  put: async (call, name, note) => {
    await checkRequested(call);
    const { revision, value } = await call.store.putSource(name, call.body, (facts) => {
      decide(call, name, facts);
      note(facts.existing);
    });
    return { revision, stored: value.source };
  },
  // That registries list it is said last, by the store.
  delete: ({ store }, name, decide) => store.deleteSource(name, ({ existing }) => decide(existing)),
  // The first synchronisation of a new source starts at once.
  changed: ({ sync }, name) => sync.sourceChanged(name),
};

function decide(
  { authority, body: settings }: AdminCall<SourceSettings>,
  name: string,
  { existing, managed }: SourceFacts,
): void {
  const claims = exactClaims(settings.claims);
  enforce(coversNew(authority, claims));
  if (existing !== undefined) {
    enforceUpdate('source', authority, existing, claims);
    requireSameKind(existing, settings);
    return;
  }
  requireNewName('source', name);
  if (settings.kind === 'managed' && managed !== undefined) throw new SkepError('store/managed-exists');
}

/** A source of another kind has other entries and another owner of their claims; it has to be a new one. */
function requireSameKind(existing: StoredSource, settings: SourceSettings): void {
  if (existing.kind !== settings.kind) {
    throw badRequest(
      `changing source type is not allowed: ${existing.name} is a ${existing.kind} source, not ${settings.kind}`,
    );
  }
  const [before, after] = [existing, settings].map((one) => decodeSource(one).form);
  if (before !== after) {
    throw badRequest(
      `changing source type is not allowed: ${existing.name} reads ${existing.kind}.${before}, not ${existing.kind}.${after}`,
    );
  }
}

const syncRow = {
  paths: ['/v1/sources/{name}/sync'],
  access: { role: 'manageSources' },
  parameters: { name: resourceName },
  query: {},
} as const;

const NOT_FOUND = 'There is no such source for this caller';

/** Asks for a synchronisation now; its result is in the status. */
const startSync = adminRoute({
  ...syncRow,
  method: 'POST',
  name: 'startSync',
  audit: 'source.sync.start',
  summary: 'Synchronise a source now',
  replies: {
    202: { description: 'Asked for; the status as it is', schema: 'SyncStatus' },
    400: 'The source is none that is synchronised',
    404: NOT_FOUND,
  },
  handler: async (call, { name }) => {
    const { kind, orphaned } = await visibleRow(SOURCES, call, name);
    if (!isSynced(kind)) {
      throw badRequest(`source ${name} is not synchronised (type: ${kind})`);
    }
    if (orphaned) throw badRequest(`source ${name} is not synchronised: it left the configuration file`);
    await call.sync.syncNow(name);
    return statusAnswer(202, call, name);
  },
});

const getSync = adminRoute({
  ...syncRow,
  method: 'GET',
  name: 'getSync',
  audit: 'source.sync.read',
  summary: 'How the synchronisation of a source is doing',
  replies: {
    200: { description: 'The status', schema: 'SyncStatus' },
    400: 'A parameter is invalid',
    404: NOT_FOUND,
  },
  handler: async (call, { name }) => {
    await visibleRow(SOURCES, call, name);
    return statusAnswer(200, call, name);
  },
});

async function statusAnswer(status: number, { store }: AdminCall, name: string): Promise<Answer> {
  const found = await store.readStatus(name);
  if (found === undefined) throw unknownResource('source', name);
  return jsonAnswer(status, syncStatusInfo(found));
}

export const SOURCE_ROUTES: readonly Route[] = [...resourceRoutes(SOURCES), startSync, getSync];

/**
 * Checks everything about settings of a request that needs no store, and that settings of the configuration file are not
 * held to. Fails with `registry/bad-request`.
 */
async function checkRequested({ body: settings, limits, ingest }: AdminCall<SourceSettings>): Promise<void> {
  const { apiFault, files = [], data, format } = decodeSource(settings);
  if (apiFault !== undefined) throw invalid(apiFault);
  if (withoutUrlSecrets(settings.config) !== settings.config) throw invalid(KEPT_SECRET);
  for (const path of files) {
    if (!isAllowedPath(path, limits.allowedPaths)) {
      throw invalid(`${JSON.stringify(path)} is in none of the folders of limits.allowedPaths`);
    }
  }
  if (data !== undefined) {
    const input = { bytes: Buffer.from(data), label: 'file.data', limits, format };
    await ingest(input, new AbortController().signal).catch((error: unknown) => {
      throw error instanceof SkepError ? invalid(error.message) : error;
    });
  }
}

const KEPT_SECRET =
  'the address has a user, a password or a secret in its query, which the store would keep; a git source takes ' +
  'auth.username and auth.passwordFile, and sources of the configuration file may have such addresses';

function invalid(detail: string): SkepError {
  return badRequest(`invalid source configuration: ${detail}`);
}
