import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Identity } from './identity.ts';

/** Why a token was not accepted. For logs and for the proxy's short texts; a registry never tells its callers which. */
export type InvalidReason =
  | 'malformed'
  | 'algorithm-refused'
  | 'no-key-id'
  | 'unknown-key'
  | 'unusable-key'
  | 'bad-signature'
  | 'wrong-issuer'
  | 'wrong-audience'
  | 'expired'
  | 'not-yet-valid'
  | 'no-expiry'
  | 'no-subject'
  | 'unusable-claims'
  | 'inactive'
  | 'opaque-not-accepted';

/**
 * What checking a token can end in. `unavailable` is neither yes nor no: the identity provider could not be asked, so the
 * request is answered with 503, never with 401 and never let through. `provider` names who of several has said so.
 */
export type TokenOutcome =
  | {
      readonly kind: 'identity';
      readonly identity: Identity;
      /** Milliseconds since the epoch; from then on the token is not accepted. */
      readonly expiresAt: number;
    }
  | { readonly kind: 'invalid'; readonly reason: InvalidReason; readonly provider?: string }
  | {
      readonly kind: 'unavailable';
      readonly cause: unknown;
      /** When it may be known again, where that can be said. */
      readonly retryAfterSeconds?: number;
      readonly provider?: string;
    };

/** The outcome where nobody could say, with the time to wait that the failure tells. */
export function unavailable(cause: unknown): TokenOutcome {
  const seconds = cause instanceof SkepError ? cause.detail['retryAfterSeconds'] : undefined;
  return {
    kind: 'unavailable',
    cause,
    ...(typeof seconds === 'number' ? { retryAfterSeconds: seconds } : {}),
  };
}

export function invalid(reason: InvalidReason): TokenOutcome {
  return { kind: 'invalid', reason };
}
