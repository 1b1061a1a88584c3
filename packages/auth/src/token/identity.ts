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
