import { redact, redactText } from '@skep/core/log/redact.ts';

/** What the log holds of a body. */
export interface RequestData {
  readonly data?: unknown;
  /** Notes about it for `metadata.extra`. */
  readonly notes: Readonly<Record<string, unknown>>;
}

const CHANGING = new Set(['POST', 'PUT', 'DELETE']);
const NOTHING: RequestData = { notes: {} };

/**
 * The body of a changing request: as JSON where it is JSON, else as text, with secrets redacted. A larger one is left
 * out and noted: half a document cannot be redacted by its member names.
 */
export function requestData(method: string, body: unknown, maxBytes: number): RequestData {
  if (!CHANGING.has(method) || !Buffer.isBuffer(body) || body.length === 0) return NOTHING;
  if (body.length > maxBytes) return { notes: { request_truncated: true, request_bytes: body.length } };
  return { data: redactedBody(body.toString('utf8')), notes: {} };
}

function redactedBody(text: string): unknown {
  try {
    return redact(JSON.parse(text));
  } catch {
    // Not JSON, which is what the request will have been refused for.
    return redactText(text);
  }
}
