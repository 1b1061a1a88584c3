import { decideRead } from '../../../access/admin-scope.ts';
import { exactClaims, shownClaims, storedClaims } from '../../../access/claim-set.ts';
import { coversNew, enforce, satisfiesExisting } from '../../../access/decision.ts';
import { decideRole } from '../../../access/gate.ts';
import { RESERVED_NAMES } from '../../../config/shape.ts';
import type { RegistryFacts } from '../../../store/decisions.ts';
import type { VersionPlace } from '../../../store/reads/listed-entries.ts';
import type { ListedVersion, RegistrySettings, StoredRegistry } from '../../../store/rows.ts';
import { badRequest } from '../../route/parameter.ts';
import type { AdminCall } from '../admin-route.ts';
import { REGISTRY_BODY } from '../bodies.ts';
import {
  compareKeys,
  pageOf,
  entryMembers,
  versionMembers,
  type PageQuery,
  type SortKey,
} from '../listings.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { enforceUpdate, requireNewName } from '../resource.ts';

export const REGISTRY_ROUTES = resourceRoutes<StoredRegistry, RegistrySettings>({
  what: 'registry',
  many: 'registries',
  id: 'Registry',
  ids: 'Registries',
  role: 'manageRegistries',
  readers: 'signed-in',
  summaries: { entries: 'List everything the sources of a registry hold', delete: 'Delete a registry' },
  replies: {
    get: 'The registry',
    entries: 'Versions by name, version and position of the source',
    put: {
      400: 'The name or body is invalid, or a source does not exist',
      403: 'It is from the configuration file, or the caller lacks a claim of it or of a source',
    },
  },
  body: REGISTRY_BODY,
  list: ({ store }) => store.listRegistries(),
  read: ({ store }, name) => store.readRegistry(name),
  show: showFor,
  // One row per version and source, never shadowed (docs/behaviour/registry.md#registries-over-the-api).
  entries: async (call, registry, query) => {
    const { items, ...next } = pageOf(await linkedVersions(call, registry, query), keyOf, query);
    const shown = items.map(({ version, ...place }) => ({
      ...entryMembers(version),
      ...versionMembers(version),
      ...place,
    }));
    return { items: shown, ...next };
  },
  // The links are replaced as a whole.
  put: async (call, name, note) => {
    const { revision, value } = await call.store.putRegistry(name, call.body, (facts) => {
      decide(call, name, facts);
      note(facts.existing);
    });
    return { revision, stored: value.registry };
  },
  // The sources stay.
  delete: ({ store }, name, decide) => store.deleteRegistry(name, decide),
});

/**
 * How the caller sees registries: only with the names of sources that it is known to see, because registries
 * are read at the same time and may name one that came in between. Whoever manages registries sees all names,
 * because replacing a registry replaces all its links, and the entries listing names them too.
 */
async function showFor({ authority, store }: AdminCall): Promise<(registry: StoredRegistry) => object> {
  const seesAll = decideRole(authority, 'manageRegistries').allowed;
  const sources = seesAll ? [] : await store.listSources();
  const seen = new Set(
    sources
      .filter(({ claims }) => decideRead(authority, storedClaims(claims)).allowed)
      .map(({ name }) => name),
  );
  return ({ name, claims, creationType, sources: links, createdAt, updatedAt }) => ({
    name,
    claims: shownClaims(claims),
    creationType,
    sources: seesAll ? links : links.filter((link) => seen.has(link)),
    createdAt,
    updatedAt,
  });
}

function decide(
  { authority, body }: AdminCall<RegistrySettings>,
  name: string,
  { existing, sources }: RegistryFacts,
): void {
  const claims = exactClaims(body.claims);
  if (existing === undefined) {
    requireNewName('registry', name, RESERVED_NAMES);
    enforce(coversNew(authority, claims));
  } else {
    enforceUpdate('registry', authority, existing, claims);
  }
  // In the order of the request: 400 for a source that does not exist, 403 for one that the caller may not
  // use, although that reveals that it exists.
  for (const link of body.sources) {
    const source = sources.get(link);
    if (source === undefined) throw badRequest(`source not found: ${link}`);
    const refused = `insufficient claims: cannot reference source ${link}`;
    enforce(satisfiesExisting(authority, storedClaims(source.claims)), refused);
  }
}

interface LinkedVersion {
  readonly version: ListedVersion;
  readonly sourceName: string;
  /** Of the source in the registry; 0 is the highest priority. */
  readonly position: number;
}

/** Of each source as many as a page takes, and one more, which tells that there is another page. */
async function linkedVersions(
  { store }: AdminCall,
  { sources }: StoredRegistry,
  { limit, cursor }: PageQuery,
): Promise<LinkedVersion[]> {
  const perSource = await Promise.all(
    sources.map((source, position) =>
      store.listVersions(source, {
        after: cursor && placeIn(position, cursor),
        limit: limit === undefined ? undefined : limit + 1,
      }),
    ),
  );
  return perSource
    .flatMap((versions, position) =>
      versions.map((version) => ({ version, sourceName: sources[position] ?? '', position })),
    )
    .toSorted((a, b) => compareKeys(keyOf(a), keyOf(b)));
}

/** Behind every kind. */
const LAST_KIND = '~';

/** Where a source goes on: what is of the same name and version comes by the position of its source. */
function placeIn(position: number, cursor: SortKey): VersionPlace {
  const [name = '', version = '', reached = '', kind = '', namespace = ''] = cursor;
  const own = positionKey(position);
  if (own === reached) return { name, version, kind, namespace };
  return { name, version, kind: own < reached ? LAST_KIND : '', namespace: '' };
}

/** Kind and namespace come last: they only tell apart what is otherwise equal. */
function keyOf({ version: { name, version, kind, namespace }, position }: LinkedVersion): SortKey {
  return [name, version, positionKey(position), kind, namespace];
}

function positionKey(position: number): string {
  return String(position).padStart(6, '0');
}
