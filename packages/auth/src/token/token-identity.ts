import type { RawClaims } from '../claims/claims.ts';
import type { Identity } from './identity.ts';

/**
 * The caller behind verified claims. The name to show is the first of `preferred_username`, `email`, `name`
 * (docs/behaviour/registry.md#sign-in); `groups` is the claim of that name, text elements only.
 */
export function tokenIdentity(claims: RawClaims, subject: string): Identity {
  const groups = claims['groups'];
  const email = text(claims['email']);
  return {
    issuer: text(claims['iss']),
    subject,
    name: [text(claims['preferred_username']), email, text(claims['name'])].find((one) => one !== '') ?? '',
    email,
    groups: Array.isArray(groups) ? groups.filter((one) => typeof one === 'string') : [],
    claims,
  };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
