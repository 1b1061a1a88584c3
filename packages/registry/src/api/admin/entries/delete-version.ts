import { SkepError } from '@skep/core/errors/skep-error.ts';
import { enforce } from '../../../access/decision.ts';
import { decideEntryAccess } from '../../../access/publish-rules.ts';
import { storedClaims } from '../../../access/stored-claims.ts';
import type { EntryAddress } from '../../../store/decisions.ts';
import { registryName, serverName, versionName } from '../../path-parameters.ts';
import { registryPaths } from '../../registry-route.ts';
import { type AdminCall, adminRoute, NO_CONTENT } from '../admin-route.ts';
import { enterRegistry } from '../publish/target-registry.ts';
import { chooseVersion } from './choose-entry.ts';
import { entryAddress, entryName, entryType, UNSUPPORTED_TYPE } from './entry-address.ts';

const GONE = { 204: { description: 'Deleted; the last version takes the entry with it' } } as const;

/** Specification §2.6.3, "Delete". */
export const deleteEntryVersion = adminRoute({
  method: 'DELETE',
  paths: ['/v1/entries/{type}/{name}/versions/{version}'],
  access: { role: 'manageEntries' },
  name: 'deleteEntryVersion',
  audit: 'entry.delete',
  summary: 'Delete a published version',
  parameters: { type: entryType(UNSUPPORTED_TYPE), name: entryName, version: versionName },
  query: {},
  replies: {
    ...GONE,
    400: { description: 'The type or another parameter is invalid', schema: 'Error' },
    403: { description: 'The caller lacks a claim of the entry', schema: 'Error' },
    404: { description: 'No such version was published', schema: 'Error' },
    409: { description: 'More than one entry has the bare name', schema: 'Error' },
  },
  handler: async (call, { type, name, version }) => {
    await deleteVersion(call, entryAddress(type, name), version);
    return NO_CONTENT;
  },
});

/** The counterpart of the seed's publish endpoint. */
export const deleteFromRegistry = adminRoute({
  method: 'DELETE',
  paths: registryPaths(['/servers/{serverName}/versions/{version}']),
  access: { role: 'manageEntries' },
  name: 'deleteServerVersion',
  audit: 'entry.delete',
  summary: 'Delete a version of a server from the managed source of a registry',
  parameters: { registry: registryName, serverName, version: versionName },
  query: {},
  replies: {
    ...GONE,
    400: { description: 'A parameter is invalid', schema: 'Error' },
    403: {
      description: 'The caller may not enter the registry, or lacks a claim of the entry',
      schema: 'Error',
    },
    404: {
      description: 'There is no such registry, or no such version was published to it',
      schema: 'Error',
    },
  },
  handler: async (call, { registry, serverName: name, version }) => {
    const { sources } = await enterRegistry(call, registry);
    const managed = (await call.store.listSources()).find(({ kind }) => kind === 'managed');
    if (managed === undefined || !sources.includes(managed.name)) throw new SkepError('registry/not-found');
    await deleteVersion(call, { kind: 'server', namespace: '', name }, version);
    return NO_CONTENT;
  },
});

async function deleteVersion(call: AdminCall, address: EntryAddress, version: string): Promise<void> {
  const choose = chooseVersion(address, version);
  const { revision } = await call.store.deleteVersion(address, version, (found) => {
    const entry = choose(found);
    enforce(decideEntryAccess(call.authority, storedClaims(entry.claims)));
    return entry;
  });
  await call.applied(revision);
}
