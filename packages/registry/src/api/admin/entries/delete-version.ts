import { SkepError } from '@skep/core/errors/skep-error.ts';
import { enforce } from '../../../access/decision.ts';
import { decideEntryAccess } from '../../../access/publish-rules.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import type { EntryAddress } from '../../../store/decisions.ts';
import { registryName, serverName, versionName, badRequest, type Parameter } from '../../route/parameter.ts';
import { registryPaths } from '../../reads/registry-route.ts';
import type { Answer } from '../../route/route.ts';
import { adminRoute, NO_CONTENT, type AdminCall } from '../admin-route.ts';
import { ANY_TARGET, enterRegistry, requireTarget, targetIn } from '../publish/target-registry.ts';
import { entryAddress, entryName, entryType, UNSUPPORTED_TYPE, chooseVersion } from './entry-address.ts';

const GONE = { 204: { description: 'Deleted; the last version takes the entry with it' } } as const;

const pathVersion: Parameter<string | undefined> = {
  ...versionName,
  parse: (text, limits) => (text === undefined ? undefined : versionName.parse(text, limits)),
};

/** What is stored can always be deleted, also what no path can carry and older releases took for a version. */
const storedVersion: Parameter<string | undefined> = {
  description: 'The version, where the path does not hold it; any text, as it is stored',
  schema: { type: 'string' },
  parse: (text) => (text === '' ? undefined : text),
};

/** Deletes one published version (docs/behaviour/registry.md#deleting-versions). */
export const deleteEntryVersion = adminRoute({
  method: 'DELETE',
  paths: ['/v1/entries/{type}/{name}/versions/{version}', '/v1/entries/{type}/{name}/versions'],
  access: { role: 'manageEntries' },
  name: 'deleteEntryVersion',
  audit: 'entry.delete',
  summary: 'Delete a published version',
  parameters: { type: entryType(UNSUPPORTED_TYPE), name: entryName, version: pathVersion },
  query: { version: storedVersion },
  replies: {
    ...GONE,
    400: 'The type or another parameter is invalid',
    403: 'The caller lacks a claim of the entry',
    404: 'No such version was published',
    409: 'More than one entry has the bare name',
  },
  handler: (call, { type, name, version }, query) =>
    deleteVersion(call, entryAddress(type, name), version ?? query.version),
});

/** Deletes at the door of a registry. */
export const deleteFromRegistry = adminRoute({
  method: 'DELETE',
  paths: registryPaths(['/servers/{serverName}/versions/{version}', '/servers/{serverName}/versions']),
  access: { role: 'manageEntries' },
  name: 'deleteServerVersion',
  audit: 'entry.delete',
  summary: 'Delete a version of a server from the managed source of a registry',
  parameters: { registry: registryName, serverName, version: pathVersion },
  query: { version: storedVersion },
  replies: {
    ...GONE,
    400: 'A parameter is invalid',
    403: 'The caller may not enter the registry, or lacks a claim of the entry',
    404: 'There is no such registry, or no such version was published to it',
  },
  handler: async (call, { registry, serverName: name, version }, query) => {
    const { sources } = await enterRegistry(call, registry);
    const managed = (await call.store.listSources()).find(({ kind }) => kind === 'managed');
    if (managed === undefined || !sources.includes(managed.name)) throw new SkepError('registry/not-found');
    const address = { kind: 'server', namespace: '', name, registry } as const;
    return deleteVersion(call, address, version ?? query.version);
  },
});

async function deleteVersion(
  call: AdminCall,
  address: EntryAddress,
  version: string | undefined,
): Promise<Answer> {
  if (version === undefined)
    throw badRequest('version is missing: give it in the path, or as a query parameter');
  const { registry } = address;
  const target = registry === undefined ? ANY_TARGET : targetIn(registry, call.authority);
  const choose = chooseVersion(address, version);
  const { revision } = await call.store.deleteVersion(address, version, (found, facts) => {
    requireTarget(facts, target);
    const entry = choose(found);
    enforce(decideEntryAccess(call.authority, storedClaims(entry.claims)));
    return entry;
  });
  await call.applied(revision);
  return { ...NO_CONTENT, facts: { version } };
}
