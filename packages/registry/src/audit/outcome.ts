import type { AuditOutcome } from '@skep/core/audit/audit-event.ts';

/** How a request ended, by its status. 401 is nobody's right to ask, 403 somebody's lack of it. */
export function outcomeOf(status: number): AuditOutcome {
  if (status < 400) return 'success';
  if (status === 401 || status === 403) return 'denied';
  return status < 500 ? 'failure' : 'error';
}
