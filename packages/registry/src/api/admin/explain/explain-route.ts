import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { modeOf, supposedCaller, type Authority } from '../../../access/authority.ts';
import { accessReport, type AccessFacts } from '../../../access/explain.ts';
import { enforce } from '../../../access/decision.ts';
import { decideGate, decideRole } from '../../../access/gate.ts';
import { decideRead } from '../../../access/admin-scope.ts';
import { exactClaims, storedClaims } from '../../../access/claim-set.ts';
import { decideVisibility } from '../../../access/visibility.ts';
import type { EntryKind, NamedRegistry } from '../../../store/rows.ts';
import { keptVersion } from '../../../sync/ingest.ts';
import { badRequest, optional, type Parameter, segment, WORD } from '../../route/parameter.ts';
import { adminRoute, jsonAnswer, type AdminCall } from '../admin-route.ts';
import { PUBLISH_BODY } from '../bodies.ts';
import { entryType } from '../entries/entry-routes.ts';
import { readPayload, seedDraft, wrappedDraft, type Payload } from '../publish/payload.ts';
import { unknownResource } from '../resource.ts';
import { accessFacts, type Sight } from './access-question.ts';

const optionalWord = (name: string, description: string) =>
  optional(description, WORD, (text) => segment(name, text));

const kind: Parameter<EntryKind> = {
  ...entryType('invalid'),
  parse: (text, limits) => entryType('invalid').parse(text ?? 'server', limits),
};

const claims = optional(
  'Claims of a supposed caller as a JSON object; for super-admins. Absent: about oneself',
  { type: 'string' },
  (text) => {
    const value = parsedJson(text);
    if (isRecord(value)) return value;
    throw badRequest('Invalid claims parameter: must be a JSON object');
  },
);

/** Prints what the enforcing functions say, with the first failing key and what would change it. */
export const explainAccess = adminRoute({
  method: 'GET',
  paths: ['/v1/explain'],
  access: 'signed-in',
  audit: 'access.explain',
  name: 'explainAccess',
  summary: 'Why a caller may or may not do or see something',
  parameters: {},
  query: {
    registry: optionalWord('registry', 'Name of a registry: its gate, and its copies of the entry'),
    source: optionalWord('source', 'Name of a source: its scope, and its copy of the entry'),
    entry: optionalWord('entry', 'Name of an entry: of a skill or plugin `namespace/name`'),
    type: kind,
    claims,
  },
  replies: {
    200: { description: 'Every decision, in words', schema: 'AccessReport' },
    400: 'A parameter is invalid',
    403: 'Only super-admins may ask about others',
    404: 'What is asked about does not exist for the one who asks',
  },
  handler: async (call, _, { registry, source, entry, type, claims: supposed }) => {
    if (supposed !== undefined) enforce(decideRole(call.authority, 'superAdmin'));
    const { store } = call;
    const facts = await accessFacts(
      {
        registries: await store.listRegistries(),
        sources: await store.listSources(),
        readSomeEntries: (name, entries) => store.readSomeEntries(name, entries),
      },
      {
        kind: type,
        ...(registry === undefined ? {} : { registry }),
        ...(source === undefined ? {} : { source }),
        ...(entry === undefined ? {} : { entry }),
      },
      sightOf(call.authority),
    );
    const authority =
      supposed === undefined ? call.authority : supposedCaller(modeOf(call.authority), supposed);
    const shown = decideRole(call.authority, 'superAdmin').allowed ? 'values' : 'keys';
    return jsonAnswer(200, accessReport(authority, facts, shown));
  },
});

/** Answers what publishing the same body would be told, and stores nothing: the dry run of `skep publish`. */
export const explainPublish = adminRoute({
  method: 'POST',
  paths: ['/v1/explain'],
  access: 'signed-in',
  audit: 'access.explain',
  name: 'explainPublish',
  summary: 'Whether the caller may publish a version; nothing is stored',
  parameters: {},
  query: { registry: optionalWord('registry', 'Name of the registry at whose door it would be published') },
  body: PUBLISH_BODY,
  replies: {
    200: { description: 'Every decision, in words', schema: 'AccessReport' },
    400: 'The body, its claims, name or version are invalid',
    404: 'There is no such registry',
  },
  handler: async ({ authority, body, limits, store }, _, { registry: name }) => {
    const draft = name === undefined ? wrappedDraft(body) : seedDraft(body);
    const bareNames = name === undefined ? 'refused' : 'accepted';
    const payload = readPayload(body, draft, { bareNames, limits });
    const registry = (await store.listRegistries()).find((one) => one.name === name);
    if (name !== undefined && registry === undefined) throw unknownResource('registry', name);
    const publish = await publishFacts(store, payload, registry);
    const facts = { ...(registry === undefined ? {} : { registry }), publish };
    const shown = decideRole(authority, 'superAdmin').allowed ? 'values' : 'keys';
    return jsonAnswer(200, accessReport(authority, facts, shown));
  },
});

/** What a publish would find now; it asks again in its transaction. */
async function publishFacts(
  { listSources, findManaged }: AdminCall['store'],
  { entry, claims }: Payload,
  registry: NamedRegistry | undefined,
): Promise<NonNullable<AccessFacts['publish']>> {
  const { kind, namespace, name } = keptVersion(entry);
  const managed = (await listSources()).find((source) => source.kind === 'managed');
  const isReached = managed !== undefined && registry?.sources.includes(managed.name) !== false;
  const [known] = await findManaged({ kind, namespace, name });
  return {
    shown: `${namespace === '' ? name : `${namespace}/${name}`}@${entry.version}`,
    request: {
      claims,
      target: isReached ? { claims: storedClaims(managed.claims) } : undefined,
      entry: known && {
        claims: exactClaims(known.claims),
        hasVersion: known.versions.includes(entry.version),
      },
    },
  };
}

/**
 * Callers learn about themselves what they could find out anyway: that they may not pass a registry's gate, and why. What
 * is hidden from them stays as if it did not exist.
 */
function sightOf(authority: Authority): Sight {
  return {
    enters: (registry) => decideGate(authority, storedClaims(registry)).allowed,
    reads: (source) => decideRead(authority, storedClaims(source)).allowed,
    sees: (entry) => decideVisibility(authority, entry).allowed,
  };
}
