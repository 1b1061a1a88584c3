import { limitedField } from '@skep/core/audit/audit-event.ts';
import type { AuditEventName } from '../config/audit-events.ts';

const MAX_PATH_CHARACTERS = 2048;

/** Which member of the target a path parameter is. Names that are not here are the name of the resource itself. */
const MEMBERS: Readonly<Record<string, string>> = {
  registry: 'registry_name',
  namespace: 'namespace',
  type: 'entry_type',
  version: 'version',
};

export interface AuditedRequest {
  readonly method: string;
  /** The request target as it was sent. */
  readonly url: string;
  /** Percent-decoded. */
  readonly params: Readonly<Record<string, unknown>>;
}

/** To what it was done: names decoded, without the query, which is the caller's business. */
export function targetOf(
  event: AuditEventName,
  { method, url, params }: AuditedRequest,
): Record<string, string> {
  const named = Object.entries(params).map(([name, value]) => [
    MEMBERS[name] ?? 'resource_name',
    limitedField(String(value)),
  ]);
  return {
    method,
    path: limitedField(url.split('?', 1)[0] ?? '', MAX_PATH_CHARACTERS),
    ...(event === 'auth.unauthenticated' ? {} : { resource_type: event.split('.', 1)[0] ?? '' }),
    ...Object.fromEntries(named),
  };
}
