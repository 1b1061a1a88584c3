import { registryName } from '../../route/path-parameters.ts';
import { registryPaths } from '../../reads/registry-route.ts';
import { adminRoute } from '../admin-route.ts';
import { FLAT_PUBLISH_BODY } from '../bodies.ts';
import { readPayload, seedDraft } from './payload.ts';
import { publishEntry } from './publish-entry.ts';
import { publishedAnswer } from './published-answer.ts';
import { requireClaims } from './require-claims.ts';
import { enterServedRegistry, targetIn } from './target-registry.ts';

/** Publishes at the door of a registry (docs/behaviour/registry.md#publishing). */
export const publishToRegistry = adminRoute({
  method: 'POST',
  paths: registryPaths(['/publish']),
  access: { role: 'manageEntries' },
  name: 'publishToRegistry',
  audit: 'entry.publish',
  summary: 'Publish a version to the managed source of a registry',
  parameters: { registry: registryName },
  query: {},
  body: FLAT_PUBLISH_BODY,
  replies: {
    201: { description: 'Published: the stored document', schema: 'Published' },
    400: 'The body, its claims, name or version are invalid',
    403: 'The caller may not enter the registry, or lacks a claim it sends',
    404: 'There is no such registry',
    409: 'The version exists, the claims differ from the first version, or there is no managed source',
  },
  enter: (call, { registry }) => enterServedRegistry(call, registry),
  handler: async (call, { registry: name }) => {
    const { body } = call;
    const draft = seedDraft(body);
    requireClaims(call.authority, body);
    const rules = { bareNames: 'accepted', limits: call.limits } as const;
    const payload = readPayload(body, draft, rules);
    if (payload.entry.document.description === '') {
      call.log.warn({ registry: name, name: payload.entry.name }, 'published without a description');
    }
    const published = await publishEntry(call, payload, targetIn(name, call.authority));
    return publishedAnswer(payload.entry, published, name);
  },
});
