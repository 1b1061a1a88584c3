import { hash } from 'node:crypto';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { bundleStatus } from '@skep/core/catalog/bundle.ts';
import type { Entry } from '@skep/core/catalog/entry.ts';
import { newestVersion } from '@skep/core/catalog/version-order.ts';
import { parseLossless, serializeLossless } from '@skep/core/json/lossless.ts';
import { exactClaims, storedClaims } from '../../../access/claim-set.ts';
import { enforce } from '../../../access/decision.ts';
import { decidePublish } from '../../../access/publish-rules.ts';
import type { PublishedVersion } from '../../../store/decisions.ts';
import { keptVersion } from '../../../sync/ingest.ts';
import { registryPaths } from '../../route/route.ts';
import { registryName } from '../../route/parameter.ts';
import type { Answer } from '../../route/route.ts';
import { adminRoute, type AdminCall } from '../admin-route.ts';
import { FLAT_PUBLISH_BODY, PUBLISH_BODY } from '../bodies.ts';
import { readPayload, requireClaims, seedDraft, wrappedDraft, type Payload } from './payload.ts';
import { ANY_TARGET, enterServedRegistry, registryServing, targetIn, type Target } from './target.ts';

// How publishing works: docs/behaviour/registry.md#publishing.

const row = { method: 'POST', access: { role: 'manageEntries' }, audit: 'entry.publish', query: {} } as const;

const REPLIES = {
  201: { description: 'Published: the stored document', schema: 'Published' },
  400: 'The body, its claims, name or version are invalid',
  409: 'The version exists, the claims differ from the first version, or there is no managed source',
} as const;

/** Publishes at the admin door. */
export const publish = adminRoute({
  ...row,
  paths: ['/v1/entries'],
  name: 'publishEntry',
  summary: 'Publish a version of a server, skill or plugin to the managed source',
  parameters: {},
  body: PUBLISH_BODY,
  replies: { ...REPLIES, 403: 'The caller lacks a claim it sends' },
  handler: async (call) => {
    const { authority, body, limits } = call;
    const draft = wrappedDraft(body);
    requireClaims(authority, body);
    const payload = readPayload(body, draft, { bareNames: 'refused', limits });
    const published = await publishEntry(call, payload, ANY_TARGET);
    return publishedAnswer(payload.entry, published, registryServing(call, published.source));
  },
});

/** Publishes at the door of a registry. */
export const publishToRegistry = adminRoute({
  ...row,
  paths: registryPaths(['/publish']),
  name: 'publishToRegistry',
  summary: 'Publish a version to the managed source of a registry',
  parameters: { registry: registryName },
  body: FLAT_PUBLISH_BODY,
  replies: {
    ...REPLIES,
    403: 'The caller may not enter the registry, or lacks a claim it sends',
    404: 'There is no such registry',
  },
  enter: (call, { registry }) => enterServedRegistry(call, registry),
  handler: async (call, { registry: name }) => {
    const { authority, body, limits } = call;
    const draft = seedDraft(body);
    requireClaims(authority, body);
    const payload = readPayload(body, draft, { bareNames: 'accepted', limits });
    if (payload.entry.document.description === '') {
      call.log.warn({ registry: name, name: payload.entry.name }, 'published without a description');
    }
    const published = await publishEntry(call, payload, targetIn(name, authority));
    return publishedAnswer(payload.entry, published, name);
  },
});

/**
 * Publishes one version: the decision falls inside the transaction that writes, and the answer is given when reads of
 * this process see it. Fails with the codes of `decidePublish`.
 */
export async function publishEntry(
  call: AdminCall,
  { entry, claims }: Payload,
  target: Target,
): Promise<PublishedVersion> {
  const { content, ...identity } = keptVersion(entry);
  const { namespace, name } = identity;
  const request = {
    ...identity,
    registry: target.registry,
    claims: canonicalClaims(claims),
    version: content,
    limits: call.limits,
    seemsNew: !call.serves(identity),
  };
  const { version } = entry;
  const shownName = namespace === '' ? name : `${namespace}/${name}`;
  const { revision, value } = await call.store.publish(
    request,
    ({ target: managed, registry, entry: known }) => {
      const isReached = managed !== undefined && target.accepts(managed, registry);
      const decision = decidePublish(call.authority, {
        claims,
        target: isReached ? { claims: storedClaims(managed.claims) } : undefined,
        entry: known && { claims: exactClaims(known.claims), hasVersion: known.versions.includes(version) },
      });
      enforce(decision, {
        'version-taken': `version already exists: ${shownName}@${version}`,
        'no-managed-source': target.missing,
      });
    },
  );
  await call.applied(revision);
  return value;
}

/**
 * 201: of a server its bare document, byte for byte what is stored; of a skill or plugin the document with what the
 * registry knows about it (docs/behaviour/registry.md#publishing). `registry` is one that serves it, for the Location
 * header.
 */
function publishedAnswer(entry: Entry, published: PublishedVersion, registry: string | undefined): Answer {
  const body = entry.kind === 'server' ? entry.json : bundleBody(entry, published);
  return {
    status: 201,
    ...(registry === undefined ? {} : { location: consumerPath(entry, registry) }),
    body: () => body,
  };
}

function consumerPath(entry: Entry, registry: string): string {
  const of = encodeURIComponent;
  const base = `/registry/${of(registry)}/v0.1`;
  const version = `versions/${of(entry.version)}`;
  if (entry.kind === 'server') return `${base}/servers/${of(entry.name)}/${version}`;
  return `${base}/x/dev.skep/${entry.kind}s/${of(entry.namespace)}/${of(entry.name)}/${version}`;
}

function bundleBody(entry: Exclude<Entry, { kind: 'server' }>, published: PublishedVersion): string {
  const document = parseLossless(entry.json, { maxBytes: Infinity });
  const { createdAt, updatedAt } = published.version;
  return serializeLossless({
    id: versionId(published),
    ...(typeof document === 'object' ? document : {}),
    status: bundleStatus(entry.document.status),
    isLatest: newestVersion(published.versions) === entry.version,
    createdAt,
    updatedAt,
  });
}

/** A UUID (RFC 9562 version 8) that follows from what identifies a version, so every replica gives the same. */
function versionId({ source, kind, namespace, name, version }: PublishedVersion): string {
  const digest = hash('sha256', JSON.stringify([source, kind, namespace, name, version.version]));
  const variant = ((Number.parseInt(digest.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `${variant}${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join('-');
}
