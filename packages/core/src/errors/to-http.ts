import { CODES } from './codes.ts';
import { SkepError } from './skep-error.ts';

export interface HttpError {
  readonly status: number;
  /** JSON text `{"error": "<message>"}` (registry spec §2.2, "Error body"). */
  readonly body: string;
}

/** Status and body of an HTTP answer. Anything but a SkepError becomes 500 without its text. */
export function toHttp(error: unknown): HttpError {
  if (error instanceof SkepError && error.code !== 'internal/bug') {
    return { status: CODES[error.code].httpStatus, body: JSON.stringify({ error: error.message }) };
  }
  return { status: 500, body: '{"error":"internal server error"}' };
}
