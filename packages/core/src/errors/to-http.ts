import { CODES } from './codes.ts';
import { SkepError } from './skep-error.ts';

export interface HttpError {
  readonly status: number;
  /** JSON text `{"error": "<message>"}` (docs/behaviour/registry.md#status-codes). */
  readonly body: string;
}

/**
 * Status and body of an HTTP answer. Failures on our side are named by title only: their messages hold
 * addresses, paths and words of drivers, which are the operator's. `tellsAll` says where a log must have them.
 */
export function toHttp(error: unknown): HttpError {
  const row = error instanceof SkepError ? CODES[error.code] : CODES['internal/bug'];
  const { httpStatus: status, title } = row;
  if (error instanceof SkepError && status < 500) return { status, body: bodyOf(error.message) };
  return { status, body: bodyOf(status === 500 ? 'internal server error' : title) };
}

/** Whether the caller who gets `toHttp(error)` is told everything that the error says. */
export function tellsAll(error: unknown): boolean {
  if (!(error instanceof SkepError)) return false;
  const { httpStatus, title } = CODES[error.code];
  return httpStatus < 500 || (httpStatus > 500 && error.message === title && error.cause === undefined);
}

function bodyOf(message: string): string {
  return JSON.stringify({ error: message });
}
