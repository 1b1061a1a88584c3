import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { causeText } from '../token/outcome.ts';
import { readyAttempt, type Attempt, type ReadyAttempt } from './attempt.ts';
import { openCallback, type CallbackServer } from './callback-server.ts';
import { clientAuth, type ChosenClient } from './client-identity.ts';
import { exchangeWith, failure } from './oauth-failure.ts';
import { libraryClient } from './library-client.ts';
import { keptOf, resourceParameter, withoutIdentity } from './obtained.ts';
import type { KeptSignIn, Person } from './port.ts';
import { bindingTo } from './proof.ts';
import { pageAt } from './reach.ts';
import { redirectUri } from './register.ts';

const CALLBACK_PORT = 8666;
const TIMEOUT_MS = 30_000;
/** Letters of an address with all its parameters: more than servers read, less than a program can be started with. */
const MAX_WHOLE = 32_768;

/**
 * Authorization code with PKCE (RFC 6749 §4.1, RFC 7636, RFC 8252). Fails with `auth/no-person` where nobody can be asked, with
 * `auth/callback-port`, `auth/bad-metadata`, `auth/sign-in-timeout`, `auth/sign-in-refused` or `auth/client-refused`.
 */
export async function signInByBrowser(attempt: Attempt): Promise<KeptSignIn> {
  const { person, clock } = attempt.services;
  if (person === undefined) throw new SkepError('auth/no-person');
  const { callback, chosen } = await openFor(attempt);
  await using _ = callback;
  const ready = await readyAttempt({ ...attempt, chosen }, callback.port);
  const answer = await tokensFor({ ...ready, person, callback });
  return keptOf(ready, answer, clock.now());
}

/** A client that is registered only now may have any port; one that others registered has the port that they were told. */
async function openFor({
  target,
  chosen,
  services,
}: Attempt): Promise<{ callback: CallbackServer; chosen: ChosenClient }> {
  const wanted = chosen.client?.registered?.callbackPort ?? target.callbackPort ?? CALLBACK_PORT;
  try {
    return { callback: await openCallback(wanted, services.clock), chosen };
  } catch (error) {
    const isOurs = chosen.kind === 'cached' || chosen.kind === 'to-register';
    if (!isOurs || !(error instanceof SkepError)) throw error;
    const callback = await openCallback(0, services.clock);
    services.log.warn(
      { wanted, port: callback.port },
      'the callback port is not available; another one is used',
    );
    return { callback, chosen: { kind: 'to-register' } };
  }
}

interface Asking extends ReadyAttempt {
  readonly person: Person;
  readonly callback: CallbackServer;
}

async function tokensFor(asking: Asking): Promise<oauth.TokenEndpointResponse> {
  const { target, found, client, reach, services, callback, prover } = asking;
  const { server } = found;
  const state = oauth.generateRandomState();
  const verifier = oauth.generateRandomCodeVerifier();
  const redirect = redirectUri(callback.port);
  const address = await addressFor(asking, { state, verifier, redirect });
  const library = libraryClient(client);
  const parameters = await callback.answer({
    ...services,
    state,
    timeoutMs: services.timeoutMs ?? TIMEOUT_MS,
    check: (given) => checkAnswer(given, asking, state),
    begin: () => show(address, asking),
  });
  const code = parameters.get('code') ?? undefined;
  const secrets = [code, verifier, client.secret, state];
  return exchangeWith(server, secrets, async () => {
    const auth = await clientAuth(client, target.clientKey);
    const additionalParameters = resourceParameter(found.resourceIndicator);
    const options = { ...reach.options, ...bindingTo(prover), additionalParameters };
    const answer = await oauth.authorizationCodeGrantRequest(
      server,
      library,
      auth,
      parameters,
      redirect,
      verifier,
      options,
    );
    // Without metadata nobody knows which issuer an identity token must have.
    const checked = found.hasIssuer ? answer : await withoutIdentity(answer);
    return oauth.processAuthorizationCodeResponse(server, library, checked);
  });
}

interface OneTime {
  readonly state: string;
  readonly verifier: string;
  readonly redirect: string;
}

/**
 * RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2.1. Parameters of the operator replace none of these. Fails with `auth/bad-metadata`
 * for a page or a length that nobody is to visit.
 */
async function addressFor(
  { target, found, client, reach }: Asking,
  { state, verifier, redirect }: OneTime,
): Promise<string> {
  const address = pageAt(found.server.authorization_endpoint ?? '', reach);
  const scope = found.scopes.join(' ');
  const parameters = {
    ...target.authorizeParams,
    ...(scope === '' ? {} : { [target.scopeParamName ?? 'scope']: scope }),
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirect,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...resourceParameter(found.resourceIndicator),
  };
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
  if (address.href.length <= MAX_WHOLE) return address.href;
  throw new SkepError('auth/bad-metadata', {
    message: `the address to sign in at would have ${address.href.length} letters: the server wants very many scopes, or gave a very long client id`,
  });
}

function show(address: string, { person, services }: Asking): void {
  person.show(address);
  person.open?.(address).catch((error: unknown) => {
    services.log.info({ reason: causeText(error) }, 'no browser could be opened');
  });
}

/** The state was compared already; checks `iss` (RFC 9207) and whether the answer is an error. */
function checkAnswer(given: URLSearchParams, { found, client }: Asking, state: string): URLSearchParams {
  const { server, hasIssuer } = found;
  const parameters = new URLSearchParams(given);
  if (!hasIssuer) parameters.delete('iss');
  try {
    const accepted = oauth.validateAuthResponse(server, libraryClient(client), parameters, state);
    if (accepted.has('code')) return accepted;
  } catch (error) {
    const said = error instanceof oauth.AuthorizationResponseError ? error : undefined;
    if (said !== undefined)
      throw failure(server, { error: said.error, description: said.error_description }, [state]);
    const message = `the answer in the browser is not one of "${server.issuer}"`;
    throw new SkepError('auth/sign-in-refused', { message });
  }
  throw new SkepError('auth/bad-answer', {
    message: `"${server.issuer}" sent the browser back without a code`,
  });
}
