import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { clientAuth } from './client-identity.ts';
import { exchangeWith } from './oauth-failure.ts';
import { libraryClient } from './library-client.ts';
import { resourceParameter } from './obtained.ts';
import type { Assertion, KeptClient, SignInTarget } from './port.ts';
import { bindingTo, type Prover } from './proof.ts';
import { parsedUrl, type Reach } from './reach.ts';

/** What is not kept of a sign-in, because the operator gives it each time. */
export type UnattendedTarget = Pick<
  SignInTarget,
  'clientKey' | 'assertion' | 'authorizeParams' | 'scopeParamName'
>;

/** What a way without a person needs, at first and whenever its token ends. */
export interface Unattended {
  readonly way: 'client-credentials' | 'assertion';
  readonly server: oauth.AuthorizationServer;
  readonly client: KeptClient;
  readonly scopes: readonly string[];
  readonly resource: string | undefined;
  readonly target: UnattendedTarget;
  readonly reach: Reach;
  readonly prover: Prover | undefined;
}

type Parameters = Record<string, string>;

const GRANT = 'urn:ietf:params:oauth:grant-type:';
const TYPE = 'urn:ietf:params:oauth:token-type:';

/**
 * Tokens for the client itself (RFC 6749 §4.4), or for whoever the assertion stands for (RFC 7523 §2.1). It is asked once and by no
 * other grant. Fails with `auth/client-refused`, `auth/sign-in-refused` or `auth/unavailable`.
 */
export async function tokensUnattended(asking: Unattended): Promise<oauth.TokenEndpointResponse> {
  const { way, server, client, scopes, resource, target, reach, prover } = asking;
  const library = libraryClient(client);
  const auth = await clientAuth(client, target.clientKey);
  const options = { ...reach.options, ...bindingTo(prover) };
  const parameters: Parameters = {
    ...target.authorizeParams,
    ...(scopes.length === 0 ? {} : { [target.scopeParamName ?? 'scope']: scopes.join(' ') }),
    ...resourceParameter(resource),
  };
  if (way === 'client-credentials')
    return exchangeWith(server, [client.secret], async () => {
      const answer = await oauth.clientCredentialsGrantRequest(server, library, auth, parameters, options);
      return oauth.processClientCredentialsResponse(server, library, answer);
    });
  const assertion = await assertionOf(asking);
  const grant = `${GRANT}jwt-bearer`;
  return exchangeWith(server, [client.secret, assertion], async () => {
    const whole = { ...parameters, assertion };
    const answer = await oauth.genericTokenEndpointRequest(server, library, auth, grant, whole, options);
    return oauth.processGenericTokenEndpointResponse(server, library, answer);
  });
}

async function assertionOf({ target, server, resource, reach, scopes }: Unattended): Promise<string> {
  const { assertion } = target;
  if (assertion?.kind === 'jwt') return assertion.jwt;
  if (assertion === undefined)
    throw new SkepError('auth/not-signed-in', { message: 'nobody vouches for the caller' });
  return identityAssertion(assertion, { audience: server.issuer, resource, scopes, reach });
}

interface Asked extends Pick<Unattended, 'resource' | 'scopes' | 'reach'> {
  /** The issuer of the authorization server that the assertion is for. */
  readonly audience: string;
}

/** An identity assertion (ID-JAG) for an identity token: a token exchange (RFC 8693) at the identity provider. */
async function identityAssertion(
  from: Extract<Assertion, { kind: 'identity' }>,
  { audience, resource, scopes, reach }: Asked,
): Promise<string> {
  const provider = { issuer: parsedUrl(from.tokenUrl).origin, token_endpoint: from.tokenUrl };
  const client: KeptClient = {
    id: from.clientId,
    secret: from.clientSecret,
    authMethod: from.clientSecret === undefined ? 'none' : 'client_secret_basic',
  };
  const auth = await clientAuth(client, undefined);
  const library = libraryClient(client);
  const answer = await exchangeWith(provider, [from.idToken, from.clientSecret], async () => {
    const parameters: Parameters = {
      requested_token_type: `${TYPE}id-jag`,
      subject_token: from.idToken,
      subject_token_type: `${TYPE}id_token`,
      audience,
      ...resourceParameter(resource),
      ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
    };
    const response = await oauth.genericTokenEndpointRequest(
      provider,
      library,
      auth,
      `${GRANT}token-exchange`,
      parameters,
      reach.options,
    );
    // An assertion is no access token, and says so (RFC 8693 §2.2.1).
    const recognizedTokenTypes = { n_a: () => undefined };
    return oauth.processGenericTokenEndpointResponse(provider, library, response, { recognizedTokenTypes });
  });
  if (answer['issued_token_type'] === `${TYPE}id-jag`) return answer.access_token;
  throw new SkepError('auth/bad-answer', { message: `"${provider.issuer}" gave no identity assertion` });
}
