import { memberSlice } from '@skep/core/json/scan.ts';
import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import { OFFICIAL_BODY, type JsonBody } from '../bodies.ts';
import { readPayload, requireClaims } from '../publish/payload.ts';
import { publishEntry } from '../publish/publish-entry.ts';
import { officialItem, officialRoutes, requireManaged } from './official-route.ts';

/** `POST /v0/publish` of the official API: the body is a server document, and the answer shows it as lists do. */
export const publishOfficial = officialRoutes({
  method: 'POST',
  path: '/publish',
  access: { role: 'manageEntries' },
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
    const rules = { bareNames: 'refused', limits: call.limits } as const;
    const payload = readPayload(body, { kind: 'server', document: body.text }, rules);
    const { version, versions } = await publishEntry(call, payload, target);
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
  return { text: body.text, value: block === undefined ? value : { ...value, claims: JSON.parse(block) } };
}
