import { canonicalClaims } from '@skep/auth/claims/same.ts';
import type { RawClaims } from '@skep/auth/claims/claims.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { shownClaims, storedClaims, type ClaimSet } from '../../../access/claim-set.ts';
import type { Decision } from '../../../access/decision.ts';
import { enforce, satisfiesExisting } from '../../../access/decision.ts';
import { decideRelabel } from '../../../access/publish-rules.ts';
import type { ChooseEntry, EntryAddress, PickEntry } from '../../../store/decisions.ts';
import type { EntryKind } from '../../../store/rows.ts';
import { registryPaths } from '../../route/route.ts';
import {
  badRequest,
  type Parameter,
  optionalText,
  registryName,
  requireServerName,
  serverName,
  versionName,
  word,
} from '../../route/parameter.ts';
import type { Answer } from '../../route/route.ts';
import { type AdminCall, adminRoute, claimsChange, jsonAnswer, NO_CONTENT } from '../admin-route.ts';
import { CLAIMS_BODY } from '../bodies.ts';
import { ANY_TARGET, enterRegistry, requireTarget, type Target, targetIn } from '../publish/target.ts';

const KINDS: readonly EntryKind[] = ['server', 'skill', 'plugin'];

/** `server`, `skill` or `plugin`; anything else is refused in the words of the endpoint. */
export function entryType(fault: 'unsupported' | 'invalid'): Parameter<EntryKind> {
  return {
    description: 'What kind of entry',
    schema: { enum: KINDS },
    parse: (text) => {
      const kind = KINDS.find((known) => known === text);
      if (kind === undefined) {
        throw badRequest(`${fault} entry type: must be 'server', 'skill', or 'plugin'`);
      }
      return kind;
    },
  };
}

const entryName = word(
  'name',
  'Name of an entry: of a server as published; of a skill or plugin `namespace%2Fname`, or its bare name where only one has it',
);

const pathVersion: Parameter<string | undefined> = {
  ...versionName,
  parse: (text, limits) => (text === undefined ? undefined : versionName.parse(text, limits)),
};

/** What is stored can always be deleted, also what no path can carry and older releases took for a version. */
const storedVersion = optionalText('The version, where the path does not hold it; any text, as it is stored');

const deletion = {
  method: 'DELETE',
  access: { role: 'manageEntries' },
  audit: 'entry.delete',
  query: { version: storedVersion },
} as const;
const GONE = { 204: { description: 'Deleted; the last version takes the entry with it' } } as const;

/** Deletes one published version (docs/behaviour/registry.md#deleting-versions). */
export const deleteEntryVersion = adminRoute({
  ...deletion,
  paths: ['/v1/entries/{type}/{name}/versions/{version}', '/v1/entries/{type}/{name}/versions'],
  name: 'deleteEntryVersion',
  summary: 'Delete a published version',
  parameters: { type: entryType('unsupported'), name: entryName, version: pathVersion },
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
  ...deletion,
  paths: registryPaths(['/servers/{serverName}/versions/{version}', '/servers/{serverName}/versions']),
  name: 'deleteServerVersion',
  summary: 'Delete a version of a server from the managed source of a registry',
  parameters: { registry: registryName, serverName, version: pathVersion },
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
    return deleteVersion(call, address, version ?? query.version, targetIn(registry, call.authority));
  },
});

async function deleteVersion(
  call: AdminCall,
  address: EntryAddress,
  version: string | undefined,
  target: Target = ANY_TARGET,
): Promise<Answer> {
  if (version === undefined)
    throw badRequest('version is missing: give it in the path, or as a query parameter');
  const choose = chooseForChange(call, address, { version, target });
  const { revision } = await call.store.deleteVersion(address, version, choose);
  await call.applied(revision);
  return { ...NO_CONTENT, facts: { version } };
}

const claimsRow = {
  paths: ['/v1/entries/{type}/{name}/claims'],
  access: { role: 'manageEntries' },
  parameters: { type: entryType('invalid'), name: entryName },
  query: {},
} as const;

const REFUSALS = {
  403: 'The caller lacks a claim of the entry, or one it sends',
  404: 'No such entry was published',
  409: 'More than one entry has the bare name',
} as const;

export const getEntryClaims = adminRoute({
  ...claimsRow,
  method: 'GET',
  name: 'getEntryClaims',
  audit: 'entry.claims.read',
  summary: 'Read the claims of a published entry',
  replies: {
    200: { description: 'The claims; an empty map where there are none', schema: 'ClaimsBody' },
    400: 'The type or another parameter is invalid',
    ...REFUSALS,
  },
  handler: async (call, { type, name }) => {
    const address = entryAddress(type, name);
    const choose = chooseEntry(address, (claims) => satisfiesExisting(call.authority, claims));
    const { claims } = choose(await call.store.findManaged(address));
    return jsonAnswer(200, { claims: shownClaims(claims) ?? {} });
  },
});

/** Applies to all versions; an entry without claims exists for super-admins only. */
export const putEntryClaims = adminRoute({
  ...claimsRow,
  method: 'PUT',
  name: 'putEntryClaims',
  audit: 'entry.claims.update',
  summary: 'Replace the claims of a published entry',
  body: CLAIMS_BODY,
  replies: {
    204: { description: 'Replaced' },
    400: 'A parameter or the claims are invalid',
    ...REFUSALS,
  },
  handler: async (call, { type, name }) => {
    const address = entryAddress(type, name);
    const { authority, body } = call;
    const choose = chooseEntry(address, (claims) => decideRelabel(authority, claims, body));
    let before: ClaimSet | undefined;
    const { revision, value } = await call.store.setEntryClaims(address, canonicalClaims(body), (found) => {
      const entry = choose(found);
      before = entry.claims;
      return entry;
    });
    await call.applied(revision);
    return { ...NO_CONTENT, ...claimsChange(before, value.claims) };
  },
});

/** Where to look for an entry. The name of a server includes its namespace. Fails with `registry/bad-request`. */
function entryAddress(kind: EntryKind, name: string): EntryAddress {
  if (kind === 'server') return { kind, namespace: '', name: requireServerName(name) };
  const slash = name.indexOf('/');
  if (slash < 0) return { kind, name };
  return { kind, namespace: name.slice(0, slash), name: name.slice(slash + 1) };
}

/** The entry that a caller changes, as it comes by a door: all versions of it where none is named. */
export function chooseForChange(
  { authority }: AdminCall,
  address: EntryAddress,
  { version, target }: { readonly version?: string | undefined; readonly target: Target },
): ChooseEntry {
  const choose = chooseEntry(address, (claims) => satisfiesExisting(authority, claims), version);
  return (found, facts) => {
    requireTarget(facts, target);
    return choose(found);
  };
}

/**
 * The one entry under an address, if it has the version: what is unknown is 404 before what is forbidden is
 * 403. Fails with `registry/not-found`, or `registry/ambiguous-name` where several have the name.
 */
function chooseEntry(
  { kind, name }: EntryAddress,
  decide: (claims: RawClaims) => Decision,
  version?: string,
): PickEntry {
  return ([entry, ...others]) => {
    if (entry === undefined) throw new SkepError('registry/not-found');
    if (others.length > 0) {
      throw new SkepError('registry/ambiguous-name', {
        message: `more than one ${kind} is called ${JSON.stringify(name)}: give namespace%2Fname`,
      });
    }
    if (version !== undefined && !entry.versions.includes(version)) throw new SkepError('registry/not-found');
    enforce(decide(storedClaims(entry.claims)));
    return entry;
  };
}
