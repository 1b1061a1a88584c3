import { DEFAULT_LIMITS } from '../../shape/limits.ts';
import type { RequestBody } from '../route/route.ts';

function body(schema: string, description: string, limit: RequestBody['limit'] = 'maxBodySize'): RequestBody {
  return { schema, description, limit, maxBytes: DEFAULT_LIMITS[limit] };
}

export const FLAT_PUBLISH_BODY = body(
  'FlatPublish',
  'A server in flat form, or `{server | skill | plugin, claims}`',
);

export const PUBLISH_BODY = body(
  'Publish',
  'Exactly one of `server`, `skill` and `plugin`, and the claims of the entry',
);

export const OFFICIAL_BODY = body('Server', 'A server document as the official registry defines it');

export const STATUS_BODY = body('StatusBody', 'The status, and a message about it for people');

export const CLAIMS_BODY = body('ClaimsBody', 'The claims that replace those of the entry; none clear them');

export const SOURCE_BODY = body(
  'SourceBody',
  'Exactly one of `git`, `api`, `file` and `managed`, and what goes with it',
  'maxInlineDataSize',
);

export const REGISTRY_BODY = body('RegistryBody', 'Sources in order of priority, and the claims of the gate');
