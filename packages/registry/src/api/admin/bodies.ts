import { DEFAULT_BODIES } from '../body-limits.ts';
import type { RequestBody } from '../route.ts';

export const FLAT_PUBLISH_BODY: RequestBody = {
  description: 'A server in flat form, or `{server | skill | plugin, claims}`',
  schema: 'FlatPublish',
  limit: 'any',
  maxBytes: DEFAULT_BODIES.any,
};

export const PUBLISH_BODY: RequestBody = {
  description: 'Exactly one of `server`, `skill` and `plugin`, and the claims of the entry',
  schema: 'Publish',
  limit: 'any',
  maxBytes: DEFAULT_BODIES.any,
};

export const OFFICIAL_BODY: RequestBody = {
  description: 'A server document as the official registry defines it',
  schema: 'Server',
  limit: 'any',
  maxBytes: DEFAULT_BODIES.any,
};

export const STATUS_BODY: RequestBody = {
  description: 'The status, and a message about it for people',
  schema: 'StatusBody',
  limit: 'any',
  maxBytes: DEFAULT_BODIES.any,
};

export const CLAIMS_BODY: RequestBody = {
  description: 'The claims that replace those of the entry; none clear them',
  schema: 'ClaimsBody',
  limit: 'any',
  maxBytes: DEFAULT_BODIES.any,
};

export const SOURCE_BODY: RequestBody = {
  description: 'Exactly one of `git`, `api`, `file` and `managed`, and what goes with it',
  schema: 'SourceBody',
  limit: 'inlineData',
  maxBytes: DEFAULT_BODIES.inlineData,
};

export const REGISTRY_BODY: RequestBody = {
  description: 'Sources in order of priority, and the claims of the gate',
  schema: 'RegistryBody',
  limit: 'any',
  maxBytes: DEFAULT_BODIES.any,
};
