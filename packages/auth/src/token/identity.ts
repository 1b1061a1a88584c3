import type { RawClaims } from '../claims/claims.ts';
import type { Role } from '../claims/roles.ts';

/** Who is calling, after authentication. Holds no token. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  readonly email: string;
  readonly groups: readonly string[];
  /** Every claim as received, of a provider that may speak for some only those. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Roles that its provider may grant; all where absent. */
  readonly grantable?: readonly Role[];
}

/** Issuer and audience of identities that Skep makes itself, where no identity provider is configured. */
const LOCAL_ISSUER = 'skep-local';
const LOCAL_AUDIENCE = 'skep';
const DAY_S = 86_400;

/** The caller where nobody has to sign in: the person who started the proxy. `now` is in milliseconds. */
export function localIdentity(osUser: string | undefined, now: number): Identity {
  const subject = osUser ?? 'anonymous';
  const name = osUser === undefined ? 'Anonymous' : `Local User: ${osUser}`;
  const email = `${subject}@localhost`;
  const issuedAt = Math.floor(now / 1000);
  return {
    issuer: LOCAL_ISSUER,
    subject,
    name,
    email,
    groups: [],
    claims: {
      iss: LOCAL_ISSUER,
      aud: LOCAL_AUDIENCE,
      sub: subject,
      name,
      email,
      iat: issuedAt,
      nbf: issuedAt,
      exp: issuedAt + DAY_S,
    },
  };
}

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
