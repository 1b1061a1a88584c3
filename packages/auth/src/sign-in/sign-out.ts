import * as oauth from 'oauth4webapi';
import { causeText } from '../token/outcome.ts';
import { clientAuth } from './client-identity.ts';
import { exchangeWith } from './oauth-failure.ts';
import { libraryClient } from './library-client.ts';
import type { KeptSignIn, SignInServices, SignInTarget } from './port.ts';
import { openReach } from './reach.ts';

interface Services extends Pick<SignInServices, 'fetch' | 'log' | 'signal'> {
  readonly target?: Pick<SignInTarget, 'clientKey'> | undefined;
}

/**
 * Withdraws the tokens at the authorization server (RFC 7009), the refresh token first. False where it has no endpoint for that or did
 * not do it, which is logged; the tokens are then good until they end. The caller forgets what is kept either way.
 */
export async function signOut(kept: KeptSignIn, services: Services): Promise<boolean> {
  const { issuer, tokenEndpoint, revocationEndpoint, client } = kept;
  if (revocationEndpoint === undefined) return false;
  const server = { issuer, token_endpoint: tokenEndpoint, revocation_endpoint: revocationEndpoint };
  try {
    const reach = openReach({ resource: kept.resource }, services, kept.mayBePrivate);
    const auth = await clientAuth(client, services.target?.clientKey);
    for (const token of [kept.refreshToken, kept.accessToken]) {
      if (token === undefined) continue;
      await exchangeWith(server, [token, client.secret], async () => {
        const answer = await oauth.revocationRequest(
          server,
          libraryClient(client),
          auth,
          token,
          reach.options,
        );
        await oauth.processRevocationResponse(answer);
      });
    }
    return true;
  } catch (error) {
    services.signal?.throwIfAborted();
    services.log.warn({ issuer, reason: causeText(error) }, 'the tokens could not be withdrawn');
    return false;
  }
}
