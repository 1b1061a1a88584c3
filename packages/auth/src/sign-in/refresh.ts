import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { clientAuth } from './client-identity.ts';
import { exchangeWith } from './oauth-failure.ts';
import { libraryClient } from './library-client.ts';
import { resourceParameter, tokensOf, withoutIdentity } from './obtained.ts';
import type { KeptClient, KeptSignIn, SignInServices } from './port.ts';
import { bindingTo, keptProver, type Prover } from './proof.ts';
import { openReach, type Reach } from './reach.ts';
import { renewRegistration } from './register.ts';
import { tokensUnattended, type UnattendedTarget } from './unattended-ways.ts';

export interface RefreshServices extends Pick<SignInServices, 'fetch' | 'clock'> {
  /** What the ways without a refresh token need to ask again: the client's key, the assertion. */
  readonly target?: UnattendedTarget | undefined;
}

const MINUTE = 60_000;

/** Whether its token can be used: until a minute, or a tenth of its life where that is less, before it ends. */
export function isFresh({ accessToken, obtainedAt, expiresAt }: KeptSignIn, now: number): boolean {
  if (accessToken === undefined || expiresAt === undefined) return false;
  const life = Math.max(0, expiresAt - (obtainedAt ?? expiresAt));
  // Before it was obtained: the clock was set back, and nobody knows how old the token is.
  return now < expiresAt - Math.min(MINUTE, life / 10) && now >= (obtainedAt ?? now) - MINUTE;
}

/**
 * The sign-in with new tokens: by its refresh token (RFC 6749 §6), or asked for again where no person is needed. Fails with
 * `auth/sign-in-ended` where neither can be, else as `exchangeWith`.
 */
export async function refresh(kept: KeptSignIn, services: RefreshServices): Promise<KeptSignIn> {
  const { clock, target = {} } = services;
  const reach = reachOf(kept, services);
  const prover = kept.proofKey === undefined ? undefined : await keptProver(kept.proofKey, kept.client);
  const answer = await ask(kept, target, { reach, prover });
  const now = clock.now();
  const tokens = tokensOf(answer, { now, asked: kept.scopes, isBound: prover !== undefined });
  // A server that gives no new refresh token means the old one to be used on.
  const refreshToken = tokens.refreshToken ?? kept.refreshToken;
  return { ...kept, ...tokens, refreshToken, subject: kept.subject };
}

/** The client of the sign-in, its registration renewed. Errors as `renewRegistration`. */
export function renewClient(kept: KeptSignIn, services: RefreshServices): Promise<KeptClient> {
  return renewRegistration(kept, reachOf(kept, services));
}

function reachOf(kept: KeptSignIn, services: RefreshServices): Reach {
  return openReach({ resource: kept.resource, ...services.target }, services, kept.mayBePrivate);
}

async function ask(
  kept: KeptSignIn,
  target: UnattendedTarget,
  { reach, prover }: { readonly reach: Reach; readonly prover: Prover | undefined },
): Promise<oauth.TokenEndpointResponse> {
  const { way, client, scopes, resourceIndicator: resource, refreshToken } = kept;
  const server = { issuer: kept.issuer, token_endpoint: kept.tokenEndpoint };
  if (refreshToken === undefined) {
    if (way === 'browser' || way === 'device')
      throw new SkepError('auth/sign-in-ended', {
        message: `"${kept.issuer}" gave no token to refresh with`,
      });
    const given = { ...target, authorizeParams: target.authorizeParams ?? kept.authorizeParams };
    return tokensUnattended({ way, server, client, scopes, resource, target: given, reach, prover });
  }
  const auth = await clientAuth(client, target.clientKey);
  const library = libraryClient(client);
  return exchangeWith(server, [refreshToken, kept.accessToken, client.secret], async () => {
    const additionalParameters = resourceParameter(resource);
    const options = { ...reach.options, ...bindingTo(prover), additionalParameters };
    const answer = await oauth.refreshTokenGrantRequest(server, library, auth, refreshToken, options);
    return oauth.processRefreshTokenResponse(server, library, await withoutIdentity(answer));
  });
}
