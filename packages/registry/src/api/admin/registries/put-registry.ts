import type { Claims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import type { Authority } from '../../../access/authority.ts';
import { decideCreate, decideReference } from '../../../access/admin-scope.ts';
import { enforce } from '../../../access/decision.ts';
import { storedClaims, type ClaimSet } from '../../../access/claim-set.ts';
import { RESERVED_NAMES } from '../../../config/shape.ts';
import type { DecideOnRegistry, RegistryFacts } from '../../../store/decisions.ts';
import { badRequest } from '../../route/parameter.ts';
import { adminRoute } from '../admin-route.ts';
import { REGISTRY_BODY } from '../bodies.ts';
import { enforceUpdate, putAnswer, requireNewName, resourceName } from '../resource.ts';
import { registryInfo } from './registry-info.ts';

interface RegistryRequest {
  readonly name: string;
  readonly sources: readonly string[];
  readonly claims: Claims;
}

/** Creates or replaces a registry; the links are replaced as a whole. */
export const putRegistry = adminRoute({
  method: 'PUT',
  paths: ['/v1/registries/{name}'],
  access: { role: 'manageRegistries' },
  name: 'putRegistry',
  audit: { created: 'registry.create', otherwise: 'registry.update' },
  summary: 'Create or replace a registry',
  parameters: { name: resourceName },
  query: {},
  body: REGISTRY_BODY,
  replies: {
    200: { description: 'Replaced', schema: 'RegistryInfo' },
    201: { description: 'Created', schema: 'RegistryInfo' },
    400: 'The name or body is invalid, or a source does not exist',
    403: 'It is from the configuration file, or the caller lacks a claim of it or of a source',
  },
  handler: async (call, { name }) => {
    const request = { name, ...call.body };
    const settings = { sources: request.sources, claims: canonicalClaims(request.claims) };
    const decide = decision(call.authority, request);
    let before: ClaimSet | undefined;
    const { revision, value } = await call.store.putRegistry(name, settings, (facts) => {
      decide(facts);
      before = facts.existing?.claims;
    });
    await call.applied(revision);
    const info = registryInfo(value.registry);
    return putAnswer('registry', { created: value.created, info, before, after: settings.claims });
  },
});

function decision(authority: Authority, request: RegistryRequest): DecideOnRegistry {
  const { name, claims } = request;
  return (facts) => {
    const { existing } = facts;
    if (existing === undefined) {
      requireNewName('registry', name, RESERVED_NAMES);
      enforce(decideCreate(authority, claims));
    } else {
      enforceUpdate('registry', authority, existing, claims);
    }
    requireSources(authority, request, facts);
  };
}

/** In the order of the request: 400 for a source that does not exist, 403 for one that the caller may not use. */
function requireSources(authority: Authority, { sources }: RegistryRequest, facts: RegistryFacts): void {
  for (const name of sources) {
    const source = facts.sources.get(name);
    if (source === undefined) throw badRequest(`source not found: ${name}`);
    const refused = `insufficient claims: cannot reference source ${name}`;
    enforce(decideReference(authority, storedClaims(source.claims)), refused);
  }
}
