import * as oauth from 'oauth4webapi';

/** What a resource says in `WWW-Authenticate` about how to sign in (RFC 6750 §3, RFC 9728 §5.1). */
export interface Challenge {
  readonly scheme: string;
  readonly realm?: string | undefined;
  readonly resourceMetadata?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly error?: string | undefined;
}

/** Those of several values are joined with a comma (RFC 9110 §5.3). Empty for a value that cannot be read as a whole. */
export async function challengesOf(header: string): Promise<readonly Challenge[]> {
  const found = await parsed(header);
  return found.map(({ scheme, parameters }) => ({
    scheme,
    realm: parameters['realm'],
    resourceMetadata: parameters['resource_metadata'],
    scopes: scopesOf(parameters['scope']),
    error: parameters['error'],
  }));
}

/** The first that asks for a token. */
export async function tokenChallenge(header: string): Promise<Challenge | undefined> {
  const all = await challengesOf(header);
  return all.find(asksForToken);
}

/** Whether it asks for a token that somebody signs in for. */
export function asksForToken({ scheme }: Challenge): boolean {
  return TOKEN_SCHEMES.has(scheme);
}

const TOKEN_SCHEMES: ReadonlySet<string> = new Set(['bearer', 'oauth', 'dpop']);
const MAX_SCOPES = 100;

/** The scopes of a space-separated list (RFC 6749 §3.3), each once; undefined where it names none. */
export function scopesOf(list: string | undefined): readonly string[] | undefined {
  const all = (list ?? '').split(/\s+/u).filter((one) => /^[\u0021\u0023-\u005B\u005D-\u007E]+$/u.test(one));
  return all.length === 0 ? undefined : Array.from(new Set(all)).slice(0, MAX_SCOPES);
}

/** oauth4webapi tells the challenges of an answer by failing with them. */
async function parsed(header: string): Promise<readonly oauth.WWWAuthenticateChallenge[]> {
  try {
    const headers = { 'www-authenticate': header };
    await oauth.processRevocationResponse(new Response(null, { status: 401, headers }));
  } catch (error) {
    if (error instanceof oauth.WWWAuthenticateChallengeError) return error.cause;
  }
  return [];
}
