import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Identity } from './identity.ts';

/**
 * Why a token was not accepted, and how that is told. For logs and for the proxy's short texts, so it holds
 * nothing of the token and nothing about the provider; a registry never tells its callers which.
 */
export const INVALID = {
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
} as const;
export type InvalidReason = keyof typeof INVALID;

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
      readonly retryAfterSeconds?: number | undefined;
      readonly provider?: string;
    };

/** The outcome where nobody could say, with the time to wait that the failure tells. */
export function unavailable(cause: unknown): TokenOutcome {
  const seconds = cause instanceof SkepError ? cause.detail['retryAfterSeconds'] : undefined;
  const retryAfterSeconds = typeof seconds === 'number' ? seconds : undefined;
  return { kind: 'unavailable', cause, retryAfterSeconds };
}

export function invalid(reason: InvalidReason): TokenOutcome {
  return { kind: 'invalid', reason };
}

/** The messages along the causes of a failure, for a log; what else causes carry, such as bodies of answers, stays out. */
export function causeText(error: unknown): string {
  const messages: string[] = [];
  for (let cause = error; cause instanceof Error && messages.length < 8; cause = cause.cause) {
    messages.push(cause.message);
  }
  return messages.join(': ');
}
