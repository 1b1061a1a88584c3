import type { Identity } from '../token/identity.ts';
import { INVALID, type InvalidReason, type TokenOutcome } from '../token/outcome.ts';
import type { TokenVerifier } from '../token/verifier.ts';

/** Why a request carries no usable bearer token, and what a caller hears of it. */
const FAULTS = {
  missing: 'a bearer token is needed in the Authorization header',
  repeated: 'more than one Authorization header',
  'wrong-scheme': 'the Authorization header must use the Bearer scheme',
  empty: 'the bearer token is empty',
  'too-long': 'the bearer token is too long',
  malformed: 'the bearer token is malformed',
} as const;
type BearerFault = keyof typeof FAULTS;

/** Status 401. */
export interface Refusal {
  readonly kind: 'refused';
  /** RFC 6750 §3.1. */
  readonly error: 'invalid_request' | 'invalid_token';
  /** For logs and audit; `describeRefusal` decides what of it a caller hears. */
  readonly reason: BearerFault | InvalidReason;
  /** Whose check failed, where it was one provider's; for logs and metrics. */
  readonly provider?: string | undefined;
}

/** Who is calling, or how the request is answered instead. */
export type Authentication =
  | { readonly kind: 'identity'; readonly identity: Identity }
  | Refusal
  /** Status 503 with `Retry-After`: the identity provider could not be asked. */
  | {
      readonly kind: 'unavailable';
      readonly retryAfterSeconds: number;
      readonly provider?: string | undefined;
    };

const RETRY_AFTER_SECONDS = 10;

/**
 * Authenticates a request by what all its `Authorization` header values say. A token that was accepted a moment ago is answered
 * without a promise, so that the common request stays synchronous.
 */
export function authenticateBearer(
  bearer: Bearer,
  verifier: Pick<TokenVerifier, 'known' | 'verify'>,
): Authentication | Promise<Authentication> {
  if (bearer.kind === 'fault') return { kind: 'refused', error: 'invalid_request', reason: bearer.fault };
  const known = verifier.known(bearer.token);
  return known === undefined ? verifier.verify(bearer.token).then(toAuthentication) : toAuthentication(known);
}

/** As `authenticateBearer`, by the header values themselves. */
export function authenticate(
  authorization: readonly string[],
  verifier: Pick<TokenVerifier, 'known' | 'verify'>,
): Authentication | Promise<Authentication> {
  return authenticateBearer(bearerToken(authorization), verifier);
}

function toAuthentication(outcome: TokenOutcome): Authentication {
  if (outcome.kind === 'identity') return outcome;
  const { provider } = outcome;
  if (outcome.kind === 'invalid')
    return { kind: 'refused', error: 'invalid_token', reason: outcome.reason, provider };
  const { retryAfterSeconds = RETRY_AFTER_SECONDS } = outcome;
  return { kind: 'unavailable', retryAfterSeconds, provider };
}

/** What a refused caller hears: `terse` never says which check failed, `reason` says it in few words. */
export function describeRefusal({ error, reason }: Refusal, verbosity: 'terse' | 'reason'): string {
  if (verbosity === 'reason') return { ...INVALID, ...FAULTS }[reason];
  return error === 'invalid_request'
    ? 'missing or malformed authorization header'
    : 'token validation failed';
}

type Bearer =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'fault'; readonly fault: BearerFault };

/** Characters; longer tokens are refused before anything looks into them. */
export const MAX_TOKEN_LENGTH = 16 * 1024;

const SCHEME = /^bearer(?: +|$)/iu;
/** `b64token` of RFC 6750 §2.1: printable, without comma or quote, so two joined headers never pass. */
const B64_TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/u;

/**
 * The bearer token of a request (RFC 6750 §2.1). Takes every value of `Authorization` as received, because a server that
 * drops repeated headers could read another one than the proxy before it. The scheme is case-insensitive (RFC 9110
 * §11.1). Tokens in query or body are never looked for.
 */
export function bearerToken(authorization: readonly string[]): Bearer {
  const [header, ...more] = authorization;
  if (header === undefined) return fault('missing');
  if (more.length > 0) return fault('repeated');
  const scheme = SCHEME.exec(header);
  if (scheme === null) return fault('wrong-scheme');
  const token = header.slice(scheme[0].length);
  if (token === '') return fault('empty');
  if (token.length > MAX_TOKEN_LENGTH) return fault('too-long');
  return B64_TOKEN.test(token) ? { kind: 'token', token } : fault('malformed');
}

function fault(reason: BearerFault): Bearer {
  return { kind: 'fault', fault: reason };
}

interface Challenge {
  readonly realm?: string | undefined;
  /** Absent where the request carried no credentials and the server follows RFC 6750 §3.1 to the letter. */
  readonly error?: Refusal['error'] | 'insufficient_scope' | undefined;
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
