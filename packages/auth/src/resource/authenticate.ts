import type { Identity } from '../token/identity.ts';
import type { InvalidReason, TokenOutcome } from '../token/outcome.ts';
import type { TokenVerifier } from '../token/verifier.ts';
import { type BearerFault, bearerToken } from './bearer.ts';

/** RFC 6750 §3.1. */
export type ChallengeError = 'invalid_request' | 'invalid_token' | 'insufficient_scope';

/** Status 401. */
export interface Refusal {
  readonly kind: 'refused';
  readonly error: Exclude<ChallengeError, 'insufficient_scope'>;
  /** For logs and audit; `describeRefusal` decides what of it a caller hears. */
  readonly reason: BearerFault | InvalidReason;
  /** Whose check failed, where it was one provider's; for logs and metrics. */
  readonly provider?: string;
}

/** Who is calling, or how the request is answered instead. */
export type Authentication =
  | { readonly kind: 'identity'; readonly identity: Identity }
  | Refusal
  /** Status 503 with `Retry-After`: the identity provider could not be asked. */
  | { readonly kind: 'unavailable'; readonly retryAfterSeconds: number; readonly provider?: string };

const RETRY_AFTER_SECONDS = 10;

/**
 * Authenticates a request by all its `Authorization` header values. A token that was accepted a moment ago is answered
 * without a promise, so that the common request stays synchronous.
 */
export function authenticate(
  authorization: readonly string[],
  verifier: Pick<TokenVerifier, 'known' | 'verify'>,
): Authentication | Promise<Authentication> {
  const bearer = bearerToken(authorization);
  if (bearer.kind === 'fault') return { kind: 'refused', error: 'invalid_request', reason: bearer.fault };
  const known = verifier.known(bearer.token);
  return known === undefined ? verifier.verify(bearer.token).then(toAuthentication) : toAuthentication(known);
}

function toAuthentication(outcome: TokenOutcome): Authentication {
  if (outcome.kind === 'identity') return outcome;
  const provider = outcome.provider === undefined ? {} : { provider: outcome.provider };
  if (outcome.kind === 'unavailable') {
    const { retryAfterSeconds = RETRY_AFTER_SECONDS } = outcome;
    return { kind: 'unavailable', retryAfterSeconds, ...provider };
  }
  return { kind: 'refused', error: 'invalid_token', reason: outcome.reason, ...provider };
}

/** `terse` never says which check failed; `reason` says it in few words. */
export type Verbosity = 'terse' | 'reason';

/** What a refused caller hears. Holds nothing of the token and nothing about the provider. */
export function describeRefusal(refusal: Refusal, verbosity: Verbosity): string {
  if (verbosity === 'reason') return REASONS[refusal.reason];
  return refusal.error === 'invalid_request'
    ? 'missing or malformed authorization header'
    : 'token validation failed';
}

const REASONS: Readonly<Record<Refusal['reason'], string>> = {
  missing: 'a bearer token is needed in the Authorization header',
  repeated: 'more than one Authorization header',
  'wrong-scheme': 'the Authorization header must use the Bearer scheme',
  empty: 'the bearer token is empty',
  'too-long': 'the bearer token is too long',
  malformed: 'the bearer token is malformed',
  'algorithm-refused': 'the signature algorithm of the token is not accepted',
  'no-key-id': 'the token names no key',
  'unknown-key': 'the key of the token is unknown',
  'unusable-key': 'the key of the token cannot be used',
  'bad-signature': 'the signature of the token is wrong',
  'wrong-issuer': 'the token has another issuer',
  'wrong-audience': 'the token is for another audience',
  expired: 'the token has expired',
  'not-yet-valid': 'the token is not valid yet',
  'no-expiry': 'the token has no expiry',
  'no-subject': 'the claims of the token are unusable: no subject',
  'unusable-claims': 'the claims of the token are unusable',
  inactive: 'the token is not active',
  'opaque-not-accepted': 'the bearer token is no signed JWT',
};
