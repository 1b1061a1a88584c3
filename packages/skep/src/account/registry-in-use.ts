import { loadAppConfig, type AppConfig } from '../config/app-config.ts';
import { signInStore, type LastingSignInStore } from '../secrets/sign-in-store.ts';
import type { OfferedLogin } from './login-document.ts';
import type { AccountKeys } from './no-account.ts';
import { signInOfRegistry, type AccountSurroundings } from './tokens.ts';

/** A login of which some is known. */
export type SomeLogin = { readonly [Name in keyof OfferedLogin]?: OfferedLogin[Name] | undefined };

/** What the person said of a login; the registry is asked for the rest each time. */
export interface SaidLogin extends SomeLogin {
  /** The mark of what the person agreed to (`agreeTo`). */
  readonly agreed?: string | undefined;
}

/** The keys of the configuration file for a server and what was said of signing in there. Nothing of it is a secret. */
export function accountKeys(
  server: string,
  { issuer, clientId, audience, scopes, agreed }: SaidLogin,
): AccountKeys {
  return {
    'registry_auth.type': 'oauth',
    'registry_auth.oauth.server': server,
    'registry_auth.oauth.issuer': issuer,
    'registry_auth.oauth.client_id': clientId,
    'registry_auth.oauth.audience': audience,
    'registry_auth.oauth.scopes': scopes,
    'registry_auth.oauth.agreed': agreed,
  };
}

/** What was said of signing in to a server, where the configuration knows the server or a sign-in to it is kept. */
export async function keptLogin(server: string, around: AccountSurroundings): Promise<SaidLogin | undefined> {
  const config = await loadAppConfig(around.places);
  if (config.registryAuthServer === server) return saidIn(config);
  const kept = await signInStore(around).read(signInOfRegistry(server));
  return kept && {};
}

/** What the configuration file holds of what a person said. */
export function saidIn(config: AppConfig): SaidLogin {
  return {
    issuer: config.registryAuthIssuer,
    clientId: config.registryAuthClientId,
    audience: config.registryAuthAudience,
    scopes: config.registryAuthScopes,
    agreed: config.registryAuthAgreed,
  };
}

/** The servers that somebody is signed in to here, whichever of them is used. Fails as reading the secrets does. */
export async function serversSignedInTo(store: Pick<LastingSignInStore, 'list'>): Promise<readonly string[]> {
  const kept = await store.list(({ resource }) => signInOfRegistry(resource));
  return kept.map(({ resource }) => resource);
}
