import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Authority } from '../../../access/authority.ts';
import { decideCreate } from '../../../access/admin-scope.ts';
import { enforce } from '../../../access/decision.ts';
import { exactClaims, type ClaimSet } from '../../../access/claim-set.ts';
import { decodeSource } from '../../../sources/open-source.ts';
import type { DecideOnSource } from '../../../store/decisions.ts';
import type { SourceSettings, StoredSource } from '../../../store/rows.ts';
import { badRequest } from '../../route/parameter.ts';
import { adminRoute } from '../admin-route.ts';
import { SOURCE_BODY } from '../bodies.ts';
import { enforceUpdate, putAnswer, requireNewName, resourceName } from '../resource.ts';
import { checkRequested } from './requested-settings.ts';
import { sourceInfo } from './source-info.ts';

/** Creates or replaces a source; the first look at a synced source starts at once. */
export const putSource = adminRoute({
  method: 'PUT',
  paths: ['/v1/sources/{name}'],
  access: { role: 'manageSources' },
  name: 'putSource',
  audit: { created: 'source.create', otherwise: 'source.update' },
  summary: 'Create or replace a source',
  parameters: { name: resourceName },
  query: {},
  body: SOURCE_BODY,
  replies: {
    200: { description: 'Replaced', schema: 'SourceInfo' },
    201: { description: 'Created', schema: 'SourceInfo' },
    400: 'The name or body is invalid, or the source would become another kind',
    403: 'It is from the configuration file, or the caller lacks a claim',
    409: 'There is a managed source already',
  },
  handler: async (call, { name }) => {
    const { body: settings } = call;
    await checkRequested(call);
    const decide = decision(call.authority, name, settings);
    let before: ClaimSet | undefined;
    const { revision, value } = await call.store.putSource(name, settings, (facts) => {
      decide(facts);
      before = facts.existing?.claims;
    });
    await call.applied(revision);
    await call.sync.sourceChanged(name);
    const info = sourceInfo(value.source, await call.store.readStatus(name));
    return putAnswer('source', { created: value.created, info, before, after: settings.claims });
  },
});

function decision(authority: Authority, name: string, settings: SourceSettings): DecideOnSource {
  const claims = exactClaims(settings.claims);
  return ({ existing, managed }) => {
    enforce(decideCreate(authority, claims));
    if (existing !== undefined) {
      enforceUpdate('source', authority, existing, claims);
      requireSameKind(existing, settings);
      return;
    }
    requireNewName('source', name);
    if (settings.kind === 'managed' && managed !== undefined) throw new SkepError('store/managed-exists');
  };
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
