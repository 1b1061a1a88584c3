import * as oauth from 'oauth4webapi';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { readyAttempt, type Attempt } from './attempt.ts';
import { clientAuth } from './client-identity.ts';
import { exchangeWith } from './oauth-failure.ts';
import { libraryClient } from './library-client.ts';
import { keptOf, resourceParameter } from './obtained.ts';
import type { KeptSignIn } from './port.ts';
import { bindingTo } from './proof.ts';
import { pageAt } from './reach.ts';

/** RFC 8628 §3.2 and §3.5. */
const INTERVAL_S = 5;
const MAX_LIFE_S = 3_600;
/** The server says how often it is asked, the person how long. */
const MAX_INTERVAL_S = 60;
/** Letters of a code that a person types. */
const MAX_CODE = 100;

/**
 * Device grant (RFC 8628): shows a code, which a person types elsewhere, and asks until that was done. Fails with `auth/no-person`,
 * `auth/sign-in-timeout` when the code ends before, or `auth/sign-in-refused`.
 */
export async function signInByDevice(attempt: Attempt): Promise<KeptSignIn> {
  const { target, found, reach, services } = attempt;
  const { clock, person, signal, timeoutMs = Infinity } = services;
  if (person?.showCode === undefined) throw new SkepError('auth/no-person');
  const { server, scopes } = found;
  const resource = resourceParameter(found.resourceIndicator);
  const ready = await readyAttempt(attempt);
  const { client, prover } = ready;
  const auth = await clientAuth(client, target.clientKey);
  const library = libraryClient(client);
  const scope = scopes.length === 0 ? {} : { [target.scopeParamName ?? 'scope']: scopes.join(' ') };
  const code = await exchangeWith(server, [client.secret], async () => {
    const parameters = { ...target.authorizeParams, ...scope, ...resource };
    const answer = await oauth.deviceAuthorizationRequest(server, library, auth, parameters, reach.options);
    return oauth.processDeviceAuthorizationResponse(server, library, answer);
  });
  if (code.user_code.length > MAX_CODE)
    throw new SkepError('auth/bad-answer', {
      message: `"${server.issuer}" gave a code that nobody can type`,
    });
  const whole = code.verification_uri_complete;
  person.showCode(
    pageAt(code.verification_uri, reach).href,
    printable(code.user_code),
    whole === undefined ? undefined : pageAt(whole, reach).href,
  );
  const lifeMs = Math.min(code.expires_in, MAX_LIFE_S) * 1_000;
  const until = clock.now() + Math.min(lifeMs, timeoutMs);
  const secrets = [code.device_code, client.secret];
  const ask = async (): Promise<oauth.TokenEndpointResponse> => {
    const options = { ...reach.options, ...bindingTo(prover), additionalParameters: resource };
    const answer = await oauth.deviceCodeGrantRequest(server, library, auth, code.device_code, options);
    return oauth.processDeviceCodeResponse(server, library, answer);
  };
  let intervalS = code.interval ?? INTERVAL_S;
  for (;;) {
    const wait = Math.min(Math.max(1, intervalS), MAX_INTERVAL_S) * 1_000;
    await clock.sleep(Math.min(wait, until - clock.now()), signal);
    if (clock.now() >= until)
      throw new SkepError('auth/sign-in-timeout', { message: 'nobody typed the code in time' });
    try {
      const answer = await exchangeWith(server, secrets, ask);
      return keptOf(ready, answer, clock.now());
    } catch (error) {
      signal?.throwIfAborted();
      intervalS += pause(error);
    }
  }
}

/** How much longer to wait from now on, in seconds. Fails with the error where asking again is of no use. */
function pause(error: unknown): number {
  const said = error instanceof SkepError ? error.detail['error'] : undefined;
  if (said === 'authorization_pending') return 0;
  if (said === 'expired_token')
    throw new SkepError('auth/sign-in-timeout', { message: 'nobody typed the code in time' });
  // RFC 8628 §3.5: a server that cannot be reached is asked less often, too.
  if (said === 'slow_down' || hasCode(error, 'auth/unavailable') || isOfNetwork(error)) return INTERVAL_S;
  throw error;
}

function isOfNetwork(error: unknown): boolean {
  return hasCode(error, 'fetch/unreachable') || hasCode(error, 'fetch/timeout');
}
