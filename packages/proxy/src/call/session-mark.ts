import { hash } from 'node:crypto';
import type { Call } from './call.ts';

/**
 * Tells the session that a call names from others, and is of no use to whoever reads it: where nobody signs in, the id itself
 * is all that it takes to speak as its client. Undefined where there is none.
 */
export function sessionMark({ req, target }: Pick<Call, 'req' | 'target'>): string | undefined {
  const query = target.indexOf('?');
  const id =
    req.headers['mcp-session-id'] ??
    (query === -1 ? undefined : new URLSearchParams(target.slice(query)).get('session_id'));
  return typeof id === 'string' && id !== '' ? hash('sha256', id).slice(0, 16) : undefined;
}
