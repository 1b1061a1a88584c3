import { adminRoute } from '../admin-route.ts';
import { PUBLISH_BODY } from '../bodies.ts';
import { readPayload, wrappedDraft } from './payload.ts';
import { publishEntry } from './publish-entry.ts';
import { publishedAnswer } from './published-answer.ts';
import { requireClaims } from './require-claims.ts';
import { ANY_TARGET, registryServing } from './target-registry.ts';

/** Publishes at the admin door (docs/behaviour/registry.md#publishing). */
export const publish = adminRoute({
  method: 'POST',
  paths: ['/v1/entries'],
  access: { role: 'manageEntries' },
  name: 'publishEntry',
  audit: 'entry.publish',
  summary: 'Publish a version of a server, skill or plugin to the managed source',
  parameters: {},
  query: {},
  body: PUBLISH_BODY,
  replies: {
    201: { description: 'Published: the stored document', schema: 'Published' },
    400: 'The body, its claims, name or version are invalid',
    403: 'The caller lacks a claim it sends',
    409: 'The version exists, the claims differ from the first version, or there is no managed source',
  },
  handler: async (call) => {
    const { body } = call;
    const draft = wrappedDraft(body);
    requireClaims(call.authority, body);
    const rules = { bareNames: 'refused', limits: call.limits } as const;
    const payload = readPayload(body, draft, rules);
    const published = await publishEntry(call, payload, ANY_TARGET);
    return publishedAnswer(payload.entry, published, registryServing(call, published.source));
  },
});
