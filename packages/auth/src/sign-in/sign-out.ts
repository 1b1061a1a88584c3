import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { causeText } from '../token/outcome.ts';
import { clientAuth } from './client-identity.ts';
import { exchangeWith } from './oauth-failure.ts';
import { libraryClient } from './library-client.ts';
import type { KeptSignIn, SignInServices, SignInTarget } from './port.ts';
import { openReach } from './reach.ts';

/** Nobody waits long for what is only better done. */
const WITHDRAWAL_MS = 5_000;

interface Services extends Pick<SignInServices, 'fetch' | 'log' | 'signal'> {
  readonly target?: Pick<SignInTarget, 'clientKey'> | undefined;
}

/**
 * Withdraws the tokens at the authorization server (RFC 7009), the refresh token first. False where it has no endpoint for that or did
 * not do it for every one, which is logged; what is left is then good until it ends. The caller forgets what is kept either way.
 */
export async function signOut(kept: KeptSignIn, services: Services): Promise<boolean> {
  const { issuer, tokenEndpoint, revocationEndpoint, client } = kept;
  if (revocationEndpoint === undefined) return false;
  const server = { issuer, token_endpoint: tokenEndpoint, revocation_endpoint: revocationEndpoint };
  const withdraw = async (token: string): Promise<void> => {
    const reach = openReach({ resource: kept.resource }, services, kept.mayBePrivate);
    const auth = await clientAuth(client, services.target?.clientKey);
    await exchangeWith(server, [token, client.secret], async () => {
      const answer = await oauth.revocationRequest(server, libraryClient(client), auth, token, reach.options);
      await oauth.processRevocationResponse(answer);
    });
  };
  let isWithdrawn = true;
  for (const token of [kept.refreshToken, kept.accessToken]) {
    if (token === undefined) continue;
    try {
      await withdraw(token);
    } catch (error) {
      services.signal?.throwIfAborted();
      services.log.warn({ issuer, reason: causeText(error) }, 'a token could not be withdrawn');
      isWithdrawn = false;
      // A server that refuses one may take the other (RFC 7009 §2.2.1); one that is away takes neither.
      if (!(error instanceof SkepError && error.code.startsWith('auth/'))) break;
    }
  }
  return isWithdrawn;
}

/**
 * Withdraws `gone`, as well as can be in some seconds, where that takes back nothing of `stays`, if there is such, or of others: many
 * servers have one grant for all that a client got from one person, and withdrawing any token of it ends all (RFC 7009 §2.1). So its
 * client has to be one that was registered for it, and not the client, issuer and person of `stays` (decision 0393). Never fails.
 */
export async function withdrawBeside(
  gone: KeptSignIn,
  stays: KeptSignIn | undefined,
  { fetch, log }: Pick<Services, 'fetch' | 'log'>,
): Promise<void> {
  if (gone.client.registered === undefined) return;
  const isOther = gone.issuer !== stays?.issuer || gone.client.id !== stays.client.id;
  const areKnown = gone.subject !== undefined && stays?.subject !== undefined;
  if (!isOther && !(areKnown && gone.subject !== stays.subject)) return;
  // Whoever ended the command with Ctrl-C wants what nobody keeps least.
  const signal = AbortSignal.timeout(WITHDRAWAL_MS);
  await signOut(gone, { fetch, log, signal }).catch(() => undefined);
}
