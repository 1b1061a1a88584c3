import type { RequestBody } from '../route.ts';

/** Of every request but those that may carry a whole catalogue. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Inline data of a source (specification §2.9), which is a JSON text inside JSON. */
const MAX_SOURCE_BYTES = 10 * 1024 * 1024;

export const FLAT_PUBLISH_BODY: RequestBody = {
  description: 'A server in flat form, or `{server | skill | plugin, claims}`',
  schema: 'FlatPublish',
  maxBytes: MAX_BODY_BYTES,
};

export const PUBLISH_BODY: RequestBody = {
  description: 'Exactly one of `server`, `skill` and `plugin`, and the claims of the entry',
  schema: 'Publish',
  maxBytes: MAX_BODY_BYTES,
};

export const CLAIMS_BODY: RequestBody = {
  description: 'The claims that replace those of the entry; none clear them',
  schema: 'ClaimsBody',
  maxBytes: MAX_BODY_BYTES,
};

export const SOURCE_BODY: RequestBody = {
  description: 'Exactly one of `git`, `api`, `file` and `managed`, and what goes with it',
  schema: 'SourceBody',
  maxBytes: MAX_SOURCE_BYTES,
};

export const REGISTRY_BODY: RequestBody = {
  description: 'Sources in order of priority, and the claims of the gate',
  schema: 'RegistryBody',
  maxBytes: MAX_BODY_BYTES,
};
