import { parseJson } from '@skep/core/json/parsed-json.ts';
import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import { newestVersion } from '@skep/core/catalog/version-order.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { memberSlice } from '@skep/core/json/scan.ts';
import { KINDS } from '../../../engine/kinds.ts';
import type { StoredVersion } from '../../../store/rows.ts';
import { joinedName, serverPaths } from '../../route/route.ts';
import {
  type Parameters,
  type Parsed,
  parseParameters,
  registryName,
  serverName,
  versionName,
} from '../../route/parameter.ts';
import type { Answer, Route } from '../../route/route.ts';
import { type AdminCall, adminCall, jsonAnswer } from '../admin-route.ts';
import { type JsonBody, OFFICIAL_BODY, STATUS_BODY } from '../bodies.ts';
import { chooseForChange } from '../entries/entry-routes.ts';
import { type Payload, readPayload, requireClaims } from '../publish/payload.ts';
import { publishEntry } from '../publish/publish.ts';
import { ANY_TARGET, enterRegistry, type Target, targetIn } from '../publish/target.ts';

interface OfficialRoute<P extends Parameters> extends Omit<
  Route,
  'listener' | 'access' | 'paths' | 'path' | 'query' | 'handle'
> {
  /** Below `/v0`. */
  readonly path: string;
  readonly parameters: P;
  /** What only the form below a registry answers. */
  readonly below?: Route['replies'];
  readonly handler: (call: AdminCall<Buffer>, target: Target, path: Parsed<P>) => Promise<Answer>;
}

/**
 * An endpoint of the official registry's own API, for its publisher: below a registry, whose managed source is meant, and
 * at the root, where the managed source is meant whichever registry lists it. That API is frozen as `v0`.
 */
function officialRoute<P extends Parameters>(route: OfficialRoute<P>): readonly Route[] {
  const { path, parameters, below = {}, handler, ...row } = route;
  const handle: Route['handle'] = async (context, { authority, body, ...texts }) => {
    const named = joinedName(texts.path);
    const call = adminCall(context, authority, body);
    if (!Object.hasOwn(named, 'registry'))
      return handler(call, ANY_TARGET, parseParameters(parameters, named));
    const { registry } = parseParameters({ registry: registryName }, named);
    await enterRegistry(call, registry);
    return handler(call, targetIn(registry, authority), parseParameters(parameters, named));
  };
  const access = { role: 'manageEntries' } as const;
  const common = { ...row, listener: 'public', access, query: {}, handle } as const;
  return [
    {
      ...common,
      replies: { ...row.replies, ...below },
      paths: serverPaths([path], ['/registry/{registry}/v0', '/{registry}/v0']),
      path: { registry: registryName, ...parameters },
    },
    { ...common, name: `${row.name}AtRoot`, paths: serverPaths([path], ['/v0']), path: parameters },
  ];
}

/** `POST /v0/publish` of the official API: the body is a server document, and the answer shows it as lists do. */
const publishOfficial = officialRoute({
  method: 'POST',
  path: '/publish',
  name: 'publishOfficial',
  audit: 'entry.publish',
  summary: "Publish a server with the official registry's publisher",
  parameters: {},
  body: OFFICIAL_BODY,
  replies: {
    200: { description: 'Published', schema: 'ServerItem' },
    400: 'The document, its claims, name or version are invalid',
    403: 'The caller may not enter the registry, or lacks a claim it sends',
    404: 'There is no such registry, or no managed source to publish to',
    409: 'The version exists, or the claims differ from the first version',
  },
  handler: async (call, target) => {
    await requireManaged(call, target);
    const body = withClaims(OFFICIAL_BODY.read(call.body, call.limits));
    requireClaims(call.authority, body);
    const { version, versions } = await publishEntry(call, readServer(call, body), target);
    return { status: 200, body: () => officialItem(version, versions) };
  },
});

/**
 * The official document has no place for claims of its own, so they are taken from the publisher's block, which the
 * official publisher hands on as it is: `_meta["…/publisher-provided"]["dev.skep"].claims`.
 */
function withClaims(body: JsonBody): JsonBody {
  const { claims: _, ...value } = body.value;
  const block = memberSlice(body.text, ['_meta', PUBLISHER_META, 'dev.skep', 'claims']);
  return { text: body.text, value: block === undefined ? value : { ...value, claims: parseJson(block) } };
}

function readServer({ limits }: AdminCall, body: JsonBody): Payload {
  return readPayload(body, { kind: 'server', document: body.text }, { bareNames: 'refused', limits });
}

/** `POST /v0/validate` of the official API: says what publishing would refuse about the document, and changes nothing. */
const validateOfficial = officialRoute({
  method: 'POST',
  path: '/validate',
  name: 'validateOfficial',
  audit: 'entry.validate',
  summary: 'Check a server document without publishing it',
  parameters: {},
  body: OFFICIAL_BODY,
  replies: {
    200: { description: 'What is wrong with the document, if anything', schema: 'Validation' },
  },
  below: {
    400: 'The registry parameter is invalid',
    404: 'There is no such registry',
  },
  handler: async (call) => {
    const valid = { valid: true, issues: [] };
    try {
      readServer(call, OFFICIAL_BODY.read(call.body, call.limits));
      return jsonAnswer(200, valid);
    } catch (error) {
      if (!hasCode(error, 'registry/bad-request') && !hasCode(error, 'claims/invalid')) throw error;
      const { message } = error;
      const issue = { type: 'schema', path: '', message, severity: 'error', reference: '' };
      return jsonAnswer(200, { valid: false, issues: [issue] });
    }
  },
});

const statusRow = {
  method: 'PATCH',
  audit: 'entry.status.update',
  body: STATUS_BODY,
} as const;
const REFUSALS = {
  400: 'The status, its message or another parameter is invalid',
  403: 'The caller may not enter the registry, or lacks a claim of the entry',
  404: 'There is no such registry, or no such version was published to it',
} as const;

/** `PATCH /v0/servers/{serverName}/versions/{version}/status` of the official API. */
const changeVersionStatus = officialRoute({
  ...statusRow,
  path: '/servers/{serverName}/versions/{version}/status',
  name: 'changeVersionStatus',
  summary: 'Say that a published version is active, deprecated or deleted',
  parameters: { serverName, version: versionName },
  replies: { 200: { description: 'The version as it is now', schema: 'ServerItem' }, ...REFUSALS },
  handler: async (call, target, { serverName: name, version }) => {
    const [item = '{}'] = await changeStatus(call, target, { name, version });
    return { status: 200, body: () => item };
  },
});

/** `PATCH /v0/servers/{serverName}/status` of the official API: all versions in one transaction. */
const changeServerStatus = officialRoute({
  ...statusRow,
  path: '/servers/{serverName}/status',
  name: 'changeServerStatus',
  summary: 'Say that all published versions of a server are active, deprecated or deleted',
  parameters: { serverName },
  replies: { 200: { description: 'The versions as they are now', schema: 'ChangedServers' }, ...REFUSALS },
  handler: async (call, target, { serverName: name }) => {
    const items = await changeStatus(call, target, { name });
    return {
      status: 200,
      body: () => `{"updatedCount":${items.length},"servers":[${items.join(',')}]}`,
    };
  },
});

/** Marks one version, or all where none is named. Gives what was marked, as the official API shows it. */
async function changeStatus(
  call: AdminCall<Buffer>,
  target: Target,
  { name, version }: { readonly name: string; readonly version?: string },
): Promise<string[]> {
  await requireManaged(call, target);
  const { status, statusMessage: message } = STATUS_BODY.read(call.body, call.limits);
  const address = { kind: 'server', namespace: '', name, registry: target.registry } as const;
  const request = { address, version, mark: { status, message } };
  const choose = chooseForChange(call, address, { version, target });
  const { revision, value } = await call.store.markVersions(request, choose);
  await call.applied(revision);
  return value.marked.map((marked) => officialItem(marked, value.versions));
}

/** Fails with `registry/not-found` where there is nothing to publish to, in words for whoever uses the publisher. */
async function requireManaged(call: AdminCall, target: Target): Promise<void> {
  const sources = await call.store.listSources();
  const managed = sources.find(({ kind }) => kind === 'managed');
  const registry = target.registry === undefined ? undefined : await call.store.readRegistry(target.registry);
  if (managed !== undefined && target.accepts(managed, registry)) return;
  throw new SkepError('registry/not-found', {
    message: `${target.missing}: add one to the configuration, or publish to a registry that lists it`,
  });
}

/** A version as the official API shows it: JSON text of `{server, _meta}`. */
function officialItem(version: StoredVersion, versions: readonly string[]): string {
  return KINDS.server.body(version, newestVersion(versions) === version.version).text;
}

export const OFFICIAL_ROUTES: readonly Route[] = [
  ...publishOfficial,
  ...validateOfficial,
  ...changeVersionStatus,
  ...changeServerStatus,
];
