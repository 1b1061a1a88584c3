import type { Refusal } from './authenticate.ts';

export interface Challenge {
  readonly realm?: string | undefined;
  /** Absent where the request carried no credentials and the server follows RFC 6750 §3.1 to the letter. */
  readonly error?: Refusal['error'] | undefined;
  readonly description?: string | undefined;
  /** URL of the RFC 9728 document (RFC 9728 §5.1). */
  readonly resourceMetadata?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
}

/**
 * A `WWW-Authenticate` value (RFC 6750 §3, RFC 9728 §5.1). Every text becomes one quoted-string, so nothing in it can end
 * the string, the parameter or the header.
 */
export function bearerChallenge(challenge: Challenge): string {
  const parameters = [
    parameter('realm', challenge.realm),
    parameter('error', challenge.error),
    parameter('error_description', challenge.description),
    parameter('resource_metadata', challenge.resourceMetadata),
    parameter('scope', challenge.scopes?.join(' ')),
  ].filter((one) => one !== undefined);
  return parameters.length === 0 ? 'Bearer' : `Bearer ${parameters.join(', ')}`;
}

function parameter(name: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : `${name}=${quotedString(value)}`;
}

/** RFC 9110 §5.6.4, limited to printable ASCII: header values travel as Latin-1 and controls would be refused. */
function quotedString(text: string): string {
  const printable = text.replace(/[^\u0020-\u007E]/gu, '');
  return `"${printable.replace(/["\\]/gu, String.raw`\$&`)}"`;
}
