import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Losing against others is nobody's fault: serialization_failure, deadlock_detected, lock_not_available. */
const LOST = new Set(['40001', '40P01', '55P03']);
/** Class 28: invalid_authorization_specification, invalid_password; invalid_catalog_name; insufficient_privilege. */
const REFUSED = new Set(['28000', '28P01', '3D000', '42501']);
/** admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections, idle_in_transaction_session_timeout. */
const AWAY = new Set(['57P01', '57P02', '57P03', '53300', '25P03']);

/**
 * Whatever the driver throws, in our words (PostgreSQL manual, "Error Codes"). `place` is `host:port/database`; values of
 * rows stay out of messages.
 */
export function postgresFailure(place: string, cause: unknown): SkepError {
  if (cause instanceof SkepError) return cause;
  const text = cause instanceof Error ? cause.message : String(cause);
  const state = stateOf(cause);
  if (state === undefined || AWAY.has(state) || state.startsWith('08')) {
    // No answer of the server: the connection, or the pool that waited for one.
    const message = `the database "${place}" does not answer: ${text}`;
    return new SkepError('store/unavailable', { message, cause });
  }
  const detail = { sqlState: state };
  if (LOST.has(state)) return new SkepError('store/conflict', { detail, cause });
  if (REFUSED.has(state)) {
    const message = `the database "${place}" refused: ${text}`;
    return new SkepError('store/refused-login', { message, detail, cause });
  }
  const message = `the database "${place}" failed: ${text}`;
  return new SkepError('store/failed', { message, detail, cause });
}

/** The five-character code of an error that the server sent; errors of Node have longer ones. */
function stateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  return /^[0-9A-Z]{5}$/.test(error.code) && 'severity' in error ? error.code : undefined;
}
