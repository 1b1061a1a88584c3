import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { enforce } from '../../../access/decision.ts';
import { decideEntryAccess, decideRelabel } from '../../../access/publish-rules.ts';
import { shownClaims, storedClaims, type ClaimSet } from '../../../access/claim-set.ts';
import { adminRoute, jsonAnswer, NO_CONTENT, claimsChange } from '../admin-route.ts';
import { CLAIMS_BODY } from '../bodies.ts';
import { entryAddress, entryName, entryType, INVALID_TYPE, chooseEntry } from './entry-address.ts';

const row = {
  paths: ['/v1/entries/{type}/{name}/claims'],
  access: { role: 'manageEntries' },
  parameters: { type: entryType(INVALID_TYPE), name: entryName },
  query: {},
} as const;

const REFUSALS = {
  403: 'The caller lacks a claim of the entry, or one it sends',
  404: 'No such entry was published',
  409: 'More than one entry has the bare name',
} as const;

export const getEntryClaims = adminRoute({
  ...row,
  method: 'GET',
  name: 'getEntryClaims',
  audit: 'entry.claims.read',
  summary: 'Read the claims of a published entry',
  replies: {
    200: { description: 'The claims; an empty map where there are none', schema: 'ClaimsBody' },
    400: 'The type or another parameter is invalid',
    ...REFUSALS,
  },
  handler: async (call, { type, name }) => {
    const address = entryAddress(type, name);
    const entry = chooseEntry(address)(await call.store.findManaged(address));
    enforce(decideEntryAccess(call.authority, storedClaims(entry.claims)));
    return jsonAnswer(200, { claims: shownClaims(entry.claims) ?? {} });
  },
});

/** Applies to all versions; an entry without claims exists for super-admins only. */
export const putEntryClaims = adminRoute({
  ...row,
  method: 'PUT',
  name: 'putEntryClaims',
  audit: 'entry.claims.update',
  summary: 'Replace the claims of a published entry',
  body: CLAIMS_BODY,
  replies: {
    204: { description: 'Replaced' },
    400: 'A parameter or the claims are invalid',
    ...REFUSALS,
  },
  handler: async (call, { type, name }) => {
    const address = entryAddress(type, name);
    const { body: claims } = call;
    const choose = chooseEntry(address);
    let before: ClaimSet | undefined;
    const { revision, value } = await call.store.setEntryClaims(address, canonicalClaims(claims), (found) => {
      const entry = choose(found);
      enforce(decideRelabel(call.authority, storedClaims(entry.claims), claims));
      before = entry.claims;
      return entry;
    });
    await call.applied(revision);
    return { ...NO_CONTENT, ...claimsChange(before, value.claims) };
  },
});
