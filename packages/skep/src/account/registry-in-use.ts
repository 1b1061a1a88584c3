import { loadAppConfig } from '../config/app-config.ts';
import { signInStore } from '../secrets/sign-in-store.ts';
import type { OfferedLogin } from './login-document.ts';
import type { AccountKeys } from './no-account.ts';
import { signInOfRegistry, type AccountSurroundings } from './tokens.ts';

/** A login of which some is known. */
export type SomeLogin = { readonly [Name in keyof OfferedLogin]?: OfferedLogin[Name] | undefined };

/** The keys of the configuration file for a server and what one signs in with there. Nothing of it is a secret. */
export function accountKeys(server: string, { issuer, clientId, audience, scopes }: SomeLogin): AccountKeys {
  return {
    'registry_auth.type': 'oauth',
    'registry_auth.oauth.server': server,
    'registry_auth.oauth.issuer': issuer,
    'registry_auth.oauth.client_id': clientId,
    'registry_auth.oauth.audience': audience,
    'registry_auth.oauth.scopes': scopes,
  };
}

/** How one signs in to a server, where the configuration says so or a sign-in to it is kept. */
export async function keptLogin(server: string, around: AccountSurroundings): Promise<SomeLogin | undefined> {
  const config = await loadAppConfig(around.places);
  if (config.registryAuthServer === server) {
    return {
      ...(config.registryAuthIssuer !== undefined && { issuer: config.registryAuthIssuer }),
      ...(config.registryAuthClientId !== undefined && { clientId: config.registryAuthClientId }),
      ...(config.registryAuthAudience !== undefined && { audience: config.registryAuthAudience }),
      ...(config.registryAuthScopes !== undefined && { scopes: config.registryAuthScopes }),
    };
  }
  const kept = await signInStore(around).read(signInOfRegistry(server));
  return kept && { issuer: kept.issuer, clientId: kept.client.id, scopes: kept.scopes };
}
