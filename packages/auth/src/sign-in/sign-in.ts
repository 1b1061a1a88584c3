import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readyAttempt, type Attempt } from './attempt.ts';
import { signInByBrowser } from './browser-way.ts';
import { chooseClient, registers } from './client-identity.ts';
import { signInByDevice } from './device-way.ts';
import { discover } from './discover.ts';
import { keptOf } from './obtained.ts';
import type { KeptSignIn, SignInServices, SignInTarget, SignInWay } from './port.ts';
import { openReach } from './reach.ts';
import { tokensUnattended } from './unattended-ways.ts';

/**
 * Signs in: finds the authorization server, gets a client identity, and asks for tokens. The caller stores what comes of it, in place
 * of what was kept before, which stays good until then. Fails with the codes `auth/…` that the ways name, with `fetch/…` of
 * servers that cannot be asked, or with the signal's reason; no message holds a secret.
 */
export async function signIn(
  target: SignInTarget,
  way: SignInWay,
  services: SignInServices,
): Promise<KeptSignIn> {
  services.signal?.throwIfAborted();
  const reach = openReach(target, services);
  const found = await discover(target, way, { ...services, reach });
  await services.agree?.({ issuer: found.server.issuer, scopes: found.scopes });
  const refused = new Set<'cached' | 'document'>();
  for (;;) {
    const chosen = chooseClient(target, found, { way, kept: services.kept, refused });
    try {
      return await signInAs({ target, way, found, chosen, reach, services });
    } catch (error) {
      // A client that was good once may be forgotten by its server, and a document not be read: it is registered anew, once.
      const isOurs = chosen.kind === 'cached' || (chosen.kind === 'document' && registers(found.server));
      if (!isOurs || !hasCode(error, 'auth/client-refused')) throw error;
      services.log.info(
        { issuer: found.server.issuer, client: chosen.kind },
        'the client is refused; another is used',
      );
      refused.add(chosen.kind === 'cached' ? 'cached' : 'document');
    }
  }
}

async function signInAs(attempt: Attempt): Promise<KeptSignIn> {
  const { target, way, found, chosen, reach, services } = attempt;
  if (way === 'browser') return signInByBrowser(attempt);
  if (way === 'device') return signInByDevice(attempt);
  if (way === 'client-credentials' && chosen.kind !== 'given')
    throw new SkepError('auth/client-needed', { message: 'a service signs in with a client of its own' });
  const ready = await readyAttempt(attempt);
  const { client, prover } = ready;
  const { server, scopes, resourceIndicator: resource } = found;
  const answer = await tokensUnattended({ way, server, client, scopes, resource, target, reach, prover });
  return keptOf(ready, answer, services.clock.now());
}
