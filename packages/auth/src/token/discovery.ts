import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { withRetry } from '@skep/core/fetch/retry.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { IssuerFetch } from './issuer-fetch.ts';

export interface DiscoveryOptions {
  readonly issuer: URL;
  readonly fetch: IssuerFetch['fetch'];
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

const ATTEMPTS = { tries: 3, baseMs: 500, capMs: 2_000 } as const;

/**
 * Reads `<issuer>/.well-known/openid-configuration` (OpenID Connect Discovery 1.0 §4), or where there is none the
 * document of RFC 8414; the `issuer` in it must be the one asked for. Three attempts. Fails with `auth/unavailable`.
 */
export async function discover(options: DiscoveryOptions): Promise<oauth.AuthorizationServer> {
  const { clock, random, signal } = options;
  try {
    return await withRetry(
      () => discoverOnce(options),
      () => ({ retry: true }),
      { ...ATTEMPTS, sleep: clock.sleep, random, signal },
    );
  } catch (cause) {
    throw new SkepError('auth/unavailable', {
      message: `cannot read the metadata of identity provider "${options.issuer.href}"`,
      cause,
    });
  }
}

async function discoverOnce(options: DiscoveryOptions): Promise<oauth.AuthorizationServer> {
  const openid = await ask(options, 'oidc');
  const response = openid.status === 404 ? await ask(options, 'oauth2') : openid;
  return oauth.processDiscoveryResponse(options.issuer, response);
}

function ask({ issuer, fetch, signal }: DiscoveryOptions, algorithm: 'oidc' | 'oauth2'): Promise<Response> {
  return oauth.discoveryRequest(issuer, {
    algorithm,
    signal,
    [oauth.customFetch]: (url, init) => fetch(url, { headers: init.headers, signal }),
    // `fetch` decides which plain addresses are accepted.
    [oauth.allowInsecureRequests]: true,
  });
}
