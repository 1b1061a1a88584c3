import { decideEntryAccess } from '../../../access/publish-rules.ts';
import { enforce } from '../../../access/decision.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import type { ChooseEntry, MarkedVersions } from '../../../store/decisions.ts';
import { serverName, versionName } from '../../route/parameter.ts';
import type { AdminCall } from '../admin-route.ts';
import { STATUS_BODY } from '../bodies.ts';
import { chooseEntry, chooseVersion } from '../entries/entry-address.ts';
import type { Target } from '../publish/publish-entry.ts';
import { requireTarget } from '../publish/target-registry.ts';
import { officialItem, officialRoutes, requireManaged } from './official-route.ts';

const ROW = {
  method: 'PATCH',
  access: { role: 'manageEntries' },
  audit: 'entry.status.update',
  body: STATUS_BODY,
} as const;
const REFUSALS = {
  400: 'The status, its message or another parameter is invalid',
  403: 'The caller may not enter the registry, or lacks a claim of the entry',
  404: 'There is no such registry, or no such version was published to it',
} as const;

/** `PATCH /v0/servers/{serverName}/versions/{version}/status` of the official API. */
export const changeVersionStatus = officialRoutes({
  ...ROW,
  path: '/servers/{serverName}/versions/{version}/status',
  name: 'changeVersionStatus',
  summary: 'Say that a published version is active, deprecated or deleted',
  parameters: { serverName, version: versionName },
  replies: { 200: { description: 'The version as it is now', schema: 'ServerItem' }, ...REFUSALS },
  handler: async (call, target, { serverName: name, version }) => {
    const { marked, versions } = await change(call, target, { name, version });
    const [one] = marked;
    return { status: 200, body: () => (one === undefined ? '{}' : officialItem(one, versions)) };
  },
});

/** `PATCH /v0/servers/{serverName}/status` of the official API: all versions in one transaction. */
export const changeServerStatus = officialRoutes({
  ...ROW,
  path: '/servers/{serverName}/status',
  name: 'changeServerStatus',
  summary: 'Say that all published versions of a server are active, deprecated or deleted',
  parameters: { serverName },
  replies: { 200: { description: 'The versions as they are now', schema: 'ChangedServers' }, ...REFUSALS },
  handler: async (call, target, { serverName: name }) => {
    const { marked, versions } = await change(call, target, { name });
    const items = marked.map((version) => officialItem(version, versions));
    return {
      status: 200,
      body: () => `{"updatedCount":${items.length},"servers":[${items.join(',')}]}`,
    };
  },
});

interface Subject {
  readonly name: string;
  /** All versions when absent. */
  readonly version?: string;
}

async function change(
  call: AdminCall<Buffer>,
  target: Target,
  { name, version }: Subject,
): Promise<MarkedVersions> {
  await requireManaged(call, target);
  const { status, statusMessage: message } = STATUS_BODY.read(call.body, call.limits);
  const { registry } = target;
  const address = {
    kind: 'server',
    namespace: '',
    name,
    ...(registry === undefined ? {} : { registry }),
  } as const;
  const pick = version === undefined ? chooseEntry(address) : chooseVersion(address, version);
  const choose: ChooseEntry = (found, facts) => {
    requireTarget(facts, target);
    const entry = pick(found);
    enforce(decideEntryAccess(call.authority, storedClaims(entry.claims)));
    return entry;
  };
  const mark = { status, ...(message === undefined ? {} : { message }) };
  const { revision, value } = await call.store.markVersions(
    { address, mark, ...(version === undefined ? {} : { version }) },
    choose,
  );
  await call.applied(revision);
  return value;
}
