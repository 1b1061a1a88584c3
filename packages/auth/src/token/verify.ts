import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyOptions,
  type JWTVerifyResult,
} from 'jose';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { KeySet } from './key-set.ts';
import { invalid, unavailable, type InvalidReason, type TokenOutcome } from './outcome.ts';
import { tokenIdentity } from './identity.ts';

export interface TokenRules {
  /** Accepted values of `iss`, compared exactly; empty means that it is not checked. */
  readonly issuers: readonly string[];
  /** Must be in `aud`; undefined means that it is not checked. */
  readonly audience: string | undefined;
  /** How far `nbf` and `iat` may lie in the future, in seconds. `exp` has no such grace. */
  readonly leewayS: number;
  /** Whether a token without `sub` is accepted, with the empty subject. */
  readonly subject: 'required' | 'optional';
}

/** Public-key signatures only: with `HS*` everyone who may verify could also sign (RFC 8725 §3.1). */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');

/** True for what is meant as a signed JWT: three parts, the first of which is a JWS header (RFC 7515 §3.1). */
export function looksLikeJwt(token: string): boolean {
  if (token.split('.', 4).length !== 3) return false;
  try {
    return typeof decodeProtectedHeader(token).alg === 'string';
  } catch {
    return false;
  }
}

/**
 * Verifies a JWT access token (docs/behaviour/registry.md#sign-in; RFC 7519 §7.2, RFC 8725). Keys named in the token's
 * own header (`jwk`, `jku`, `x5c`, `x5u`) are never used. Does not throw for any token.
 */
export async function verifyJwt(
  token: string,
  rules: TokenRules,
  keys: Pick<KeySet, 'find'>,
  now: number,
): Promise<TokenOutcome> {
  try {
    // Read before the signature only to leave the token to the provider that issued it, without asking this one.
    if (rules.issuers.length > 0 && !rules.issuers.includes(decodeJwt(token).iss ?? '')) {
      return invalid('wrong-issuer');
    }
    const { kid } = decodeProtectedHeader(token);
    if (typeof kid !== 'string' || kid === '') return invalid('no-key-id');
    const { payload } = await verifySignature(token, keys, {
      algorithms: ALGORITHMS,
      requiredClaims: ['exp'],
      clockTolerance: rules.leewayS,
      currentDate: new Date(now),
      ...(rules.issuers.length > 0 ? { issuer: [...rules.issuers] } : {}),
      ...(rules.audience === undefined ? {} : { audience: rules.audience }),
    });
    return accept(payload, rules, now);
  } catch (error) {
    if (hasCode(error, 'auth/unavailable')) return unavailable(error);
    const reason = reasonOf(error);
    if (reason === undefined) throw error;
    return invalid(reason);
  }
}

/** A key set is small; more keys of one id than this are a mistake. */
const MOST_OF_ONE_ID = 8;

/** By the key that the header names, or where several have this id and kind, by the first that fits the signature. */
async function verifySignature(
  token: string,
  keys: Pick<KeySet, 'find'>,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, (header) => keys.find(header), options);
  } catch (several) {
    if (!(several instanceof errors.JWKSMultipleMatchingKeys)) throw several;
    let refusal: errors.JOSEError = several;
    let tried = 0;
    for await (const key of several) {
      tried += 1;
      if (tried > MOST_OF_ONE_ID) break;
      try {
        return await jwtVerify(token, key, options);
      } catch (error) {
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
        refusal = error;
      }
    }
    throw refusal;
  }
}

/** What jose leaves to us: expiry without the leeway, and `iat`. */
function accept(payload: JWTPayload, rules: TokenRules, now: number): TokenOutcome {
  const expiresAt = (payload.exp ?? 0) * 1_000;
  if (now >= expiresAt) return invalid('expired');
  const issuedAt: unknown = payload.iat;
  if (issuedAt !== undefined && typeof issuedAt !== 'number') return invalid('unusable-claims');
  if (issuedAt !== undefined && issuedAt * 1_000 > now + rules.leewayS * 1_000)
    return invalid('not-yet-valid');
  const subject: unknown = payload.sub ?? '';
  if (typeof subject !== 'string') return invalid('unusable-claims');
  if (subject === '' && rules.subject === 'required') return invalid('no-subject');
  return { kind: 'identity', identity: tokenIdentity(payload, subject), expiresAt };
}

/** Undefined for what is no fault of the token. */
function reasonOf(error: unknown): InvalidReason | undefined {
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) return claimReason(error);
  if (error instanceof errors.JOSEAlgNotAllowed) return 'algorithm-refused';
  if (error instanceof errors.JWKSNoMatchingKey) return 'unknown-key';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'bad-signature';
  if (error instanceof errors.JWKSInvalid || error instanceof errors.JWKInvalid) return 'unusable-key';
  if (error instanceof errors.JWKSMultipleMatchingKeys) return 'unusable-key';
  if (error instanceof errors.JOSEError) return 'malformed';
  // jose and WebCrypto say so for keys that are too small or of the wrong kind.
  if (error instanceof TypeError || error instanceof DOMException) return 'unusable-key';
  return undefined;
}

function claimReason(error: errors.JWTClaimValidationFailed): InvalidReason {
  if (error.claim === 'iss') return 'wrong-issuer';
  if (error.claim === 'aud') return 'wrong-audience';
  if (error.claim === 'nbf' && error.reason === 'check_failed') return 'not-yet-valid';
  if (error.claim === 'exp' && error.reason === 'missing') return 'no-expiry';
  return 'unusable-claims';
}
