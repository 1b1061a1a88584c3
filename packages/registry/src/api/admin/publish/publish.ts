import { registryPaths } from '../../reads/registry-route.ts';
import { registryName } from '../../route/parameter.ts';
import { adminRoute } from '../admin-route.ts';
import { FLAT_PUBLISH_BODY, PUBLISH_BODY } from '../bodies.ts';
import { readPayload, requireClaims, seedDraft, wrappedDraft } from './payload.ts';
import { publishEntry } from './publish-entry.ts';
import { publishedAnswer } from './published-answer.ts';
import { ANY_TARGET, enterServedRegistry, registryServing, targetIn } from './target-registry.ts';

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
