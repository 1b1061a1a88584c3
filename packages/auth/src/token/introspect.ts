import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { IssuerFetch } from './issuer-fetch.ts';
import { invalid, type TokenOutcome } from './outcome.ts';
import { tokenIdentity } from './identity.ts';
import type { TokenRules } from './verify.ts';

export interface IntrospectionOptions {
  readonly endpoint: string;
  readonly clientId: string | undefined;
  /** Asked for each request, because secret files rotate. Undefined: no client authentication. */
  readonly clientSecret: (() => Promise<string>) | undefined;
  readonly fetch: IssuerFetch['fetch'];
  readonly rules: TokenRules;
}

/**
 * Asks the identity provider about an opaque token (RFC 7662 §2). All members of the answer stay as claims, so that roles
 * and claims work for opaque tokens too. Anything but a well-formed answer is `unavailable`: it says nothing about the
 * token. Does not throw for any token.
 */
export async function introspect(
  token: string,
  options: IntrospectionOptions,
  now: number,
): Promise<TokenOutcome> {
  try {
    const answer = await ask(token, options);
    return answer.active ? accept(answer, options.rules, now) : invalid('inactive');
  } catch (cause) {
    return { kind: 'unavailable', cause: new SkepError('auth/unavailable', { cause }) };
  }
}

async function ask(token: string, options: IntrospectionOptions): Promise<oauth.IntrospectionResponse> {
  const { endpoint, clientId, clientSecret, fetch } = options;
  const server = { issuer: new URL(endpoint).origin, introspection_endpoint: endpoint };
  const client = { client_id: clientId ?? 'anonymous' };
  const secret = clientId === undefined ? undefined : await clientSecret?.();
  const authentication = secret === undefined ? noAuthentication : oauth.ClientSecretBasic(secret);
  const response = await oauth.introspectionRequest(server, client, authentication, token, {
    additionalParameters: { token_type_hint: 'access_token' },
    [oauth.customFetch]: (url, init) =>
      fetch(url, { method: 'POST', headers: init.headers, body: init.body }),
    // `fetch` decides which plain addresses are accepted.
    [oauth.allowInsecureRequests]: true,
  });
  return oauth.processIntrospectionResponse(server, client, response);
}

const noAuthentication: oauth.ClientAuth = () => {};

/** As for a JWT, except that `iss` may be absent: the endpoint itself is the issuer's. */
function accept(answer: oauth.IntrospectionResponse, rules: TokenRules, now: number): TokenOutcome {
  const { exp, iss, aud } = answer;
  const nbf: unknown = answer.nbf;
  if (typeof exp !== 'number') return invalid('no-expiry');
  if (now >= exp * 1_000) return invalid('expired');
  // A time that cannot be read is no time that has come.
  if (nbf !== undefined && typeof nbf !== 'number') return invalid('unusable-claims');
  if (nbf !== undefined && nbf * 1_000 > now + rules.leewayS * 1_000) return invalid('not-yet-valid');
  if (iss !== undefined && rules.issuers.length > 0 && !rules.issuers.includes(iss))
    return invalid('wrong-issuer');
  if (rules.audience !== undefined && ![aud ?? []].flat().includes(rules.audience))
    return invalid('wrong-audience');
  const subject = subjectOf(answer);
  if (subject === '' && rules.subject === 'required') return invalid('no-subject');
  return { kind: 'identity', identity: tokenIdentity(answer, subject), expiresAt: exp * 1_000 };
}

/** `sub` is optional in RFC 7662 §2.2; a token of a client itself may carry nothing but `client_id`. */
function subjectOf({ sub, username, client_id: clientId }: oauth.IntrospectionResponse): string {
  return [sub, username, clientId].find((one) => typeof one === 'string' && one !== '') ?? '';
}
