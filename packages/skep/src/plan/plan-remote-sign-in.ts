import type { MayBePrivate } from '@skep/auth/sign-in/port.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { FieldValue, Settings } from '@skep/core/settings/field.ts';
import type { AppConfig } from '../config/app-config.ts';
import { REMOTE_BEARER_TOKEN, REMOTE_CLIENT_SECRET } from '../secrets/reference.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { CheckedInputs } from './check-inputs.ts';
import type { PlannedExchange } from './plan-exchange.ts';
import { tokenGrants } from './config-grants.ts';
import { requireConsent } from './plan-permissions.ts';
import {
  checkRemoteAuth,
  howImported,
  isTokenOfMachine,
  TOKEN_VARIABLE,
  ISSUERS,
  planRemoteAuth,
  type PlannedRemoteAuth,
} from './plan-remote-auth.ts';
import type { RunValues } from '../settings/run-settings.ts';
import type { NewWorkload, Surroundings } from './plan.ts';
import { isPrivateHost } from './private-host.ts';
import type { ResolvedRemote } from './resolve-target.ts';

/** What the entry says of signing in; a person who names the issuer, or its endpoints, names all of them. */
export function signInFrom(
  { plan }: ResolvedRemote,
  given: Settings,
): Readonly<Record<string, FieldValue | undefined>> {
  const { oauth } = plan ?? {};
  // A client, its scopes and parameters are those of one issuer.
  if (oauth === undefined || ISSUERS.some((name) => given.has(name))) return {};
  const { issuer, authorize_url: authorize, token_url: token } = oauth;
  const endpoints =
    authorize && token ? { remoteAuthAuthorizeUrl: authorize, remoteAuthTokenUrl: token } : {};
  return {
    ...(issuer ? { remoteAuthIssuer: issuer } : endpoints),
    remoteAuthClientId: oauth.client_id || undefined,
    remoteAuthScopes: oauth.scopes ?? undefined,
    remoteAuthCallbackPort: oauth.callback_port ?? undefined,
    remoteAuthResource: oauth.resource || undefined,
    'remote_auth_config.oauth_params': oauth.oauth_params ?? undefined,
  };
}

interface AskedElsewhere {
  readonly found: ResolvedRemote;
  readonly inputs: Pick<CheckedInputs, 'secrets'>;
  readonly exchange: PlannedExchange;
  readonly config: AppConfig;
  readonly values: RunValues;
  readonly settings: Settings;
  readonly url: URL;
  readonly hasHeaders: boolean;
}

/**
 * As `planRemoteAuth`, with whether people are sent to a private address. Fails also where a catalogue sends people to an
 * address that is not public, with `run/not-granted` for the token that it chooses, and as the store of secrets does.
 */
export async function planSignInElsewhere(
  { found, inputs, exchange, config, ...asked }: AskedElsewhere,
  around: Surroundings,
): Promise<PlannedRemoteAuth & { readonly isIssuerPrivate: boolean }> {
  const isIssuerPrivate = await hasPrivateIssuer(asked.settings, found, config);
  const planned = await planRemoteAuth(
    {
      ...asked,
      secrets: inputs.secrets,
      exchanges: exchange.config.token_exchange_config !== undefined,
      isWanted: found.plan?.oauth !== undefined,
    },
    around.cwd,
  );
  await requireAgreed(planned, asked, { entryName: found.entryName, confirm: around.confirm });
  const isGiven = planned.clientSecret !== undefined || planned.bearerToken !== undefined;
  // What was given to sign in with is sealed, or not taken.
  if (isGiven && !asked.values.explain) {
    const { signInStore } = await import('../secrets/sign-in-store.ts');
    await signInStore(around).ready();
  }
  return { ...planned, isIssuerPrivate };
}

/** Whether the person, or a catalogue that may, sends people to a private address to sign in. Fails for any other catalogue. */
async function hasPrivateIssuer(
  settings: Settings,
  { entryName }: ResolvedRemote,
  app: AppConfig,
): Promise<boolean> {
  let isPrivate = false;
  for (const name of ISSUERS) {
    const { origin, value } = settings.get(name) ?? {};
    const url = typeof value === 'string' ? URL.parse(value) : null;
    if (url === null || !(await isPrivateHost(url))) continue;
    isPrivate = true;
    if (origin !== 'registry' || app.allowPrivateRegistryIp) continue;
    throw new SkepError('fetch/refused-address', {
      message: `"${entryName ?? ''}" of the catalogue has people sign in at ${url.host}, which is no public address`,
      hint: 'if you trust it, name it with --remote-auth-issuer',
    });
  }
  return isPrivate;
}

/**
 * What the sign-in to a saved workload may ask at private addresses: what was planned, and the issuer where neither its server nor
 * a catalogue may have named it, or such catalogues are trusted.
 */
export async function mayBePrivateOf(
  {
    remote_allow_private_ip: resource = false,
    remote_auth_config: auth = {},
    registry_server_name,
  }: RunConfig,
  { allowPrivateRegistryIp }: Pick<AppConfig, 'allowPrivateRegistryIp'>,
): Promise<MayBePrivate> {
  const isTheirs = registry_server_name !== undefined && !allowPrivateRegistryIp;
  if (isTheirs || auth.issuer_found === true) return { resource, issuer: false };
  const urls = [auth.issuer, auth.authorize_url, auth.token_url].map((one) => URL.parse(one ?? ''));
  const found = await Promise.all(urls.map(async (url) => url !== null && isPrivateHost(url)));
  return { resource, issuer: found.includes(true) };
}

interface Agreeing {
  readonly entryName: string | undefined;
  readonly confirm: Surroundings['confirm'];
}

/** A server names where to sign in, and may ask for scopes; a client, parameters or another resource would be a token for others (decision 0383). */
async function requireAgreed(
  { auth, how }: PlannedRemoteAuth,
  { settings, url }: Pick<AskedElsewhere, 'settings' | 'url'>,
  { entryName, confirm }: Agreeing,
): Promise<void> {
  const who = `"${entryName ?? ''}" of the catalogue`;
  if (how === 'token' && entryName !== undefined && isTokenOfMachine(settings))
    await requireConsent({
      who,
      grants: [`send ${url.host} the token of ${TOKEN_VARIABLE}`],
      hint: 'name a file that holds it with --remote-auth-bearer-token-file, or send none with --remote-auth=false',
      confirm,
    });
  if (how !== 'sign-in' && how !== 'if-wanted') return;
  const isTheirs = (name: string): boolean => settings.get(name)?.origin === 'registry';
  const { client_id, scopes, resource, oauth_params } = auth;
  const theirs = {
    ...(client_id && isTheirs('remoteAuthClientId') ? { client_id } : {}),
    ...(resource && isTheirs('remoteAuthResource') ? { resource } : {}),
    ...(oauth_params && isTheirs('remote_auth_config.oauth_params') ? { oauth_params } : {}),
  };
  if (tokenGrants(theirs, url.href).length === 0) return;
  const { issuer, authorize_url: authorize } = auth;
  const asks = { ...theirs, ...(scopes && isTheirs('remoteAuthScopes') ? { scopes } : {}) };
  await requireConsent({
    who,
    grants: [
      `have you sign in ${issuer || authorize ? `at "${issuer || authorize}"` : `where ${url.host} says`}`,
      ...tokenGrants(asks, url.href),
      `send ${url.host} the token`,
    ],
    hint: 'to agree without being asked, say it yourself with --remote-auth-issuer and --remote-auth-client-id',
    confirm,
  });
}

interface At {
  readonly url: string;
  readonly caPath: string | undefined;
  readonly secrets: SecretEnv;
  readonly mayBePrivate: MayBePrivate;
}

/** What is done about it when the workload is made. */
export function signInOf(
  { auth, how, clientSecret }: Pick<PlannedRemoteAuth, 'auth' | 'how' | 'clientSecret'>,
  { url, caPath, secrets, mayBePrivate }: At,
): Pick<NewWorkload, 'signIn'> {
  if (how !== 'sign-in' && how !== 'if-wanted') return {};
  return {
    signIn: {
      url,
      caPath,
      mayBePrivate,
      auth,
      isWanted: how === 'sign-in',
      clientSecret: clientSecret ?? secrets[REMOTE_CLIENT_SECRET],
    },
  };
}

/** What a file has somebody give to sign in with is sealed, or not asked for. Fails as the store of secrets does. */
export async function requireSealed({ secret_env }: RunConfig, around: Surroundings): Promise<void> {
  if (!secret_env.includes(REMOTE_BEARER_TOKEN) && !secret_env.includes(REMOTE_CLIENT_SECRET)) return;
  const { signInStore } = await import('../secrets/sign-in-store.ts');
  await signInStore(around).ready();
}

/** As `signInOf`, for an imported configuration; `token` is saved where the server is shown one that somebody gives. */
export async function importedSignIn(
  config: RunConfig,
  secrets: SecretEnv,
  app: AppConfig,
): Promise<Pick<NewWorkload, 'signIn'> & { readonly token?: RunConfig['remote_auth_config'] }> {
  const { remote_url: url, skep_ca_bundle: caPath, remote_auth_config: auth = {} } = config;
  if (url === undefined) return {};
  const how = howImported(config);
  checkRemoteAuth(auth, new URL(url), how);
  if (how === 'token') return { token: auth };
  const mayBePrivate = await mayBePrivateOf(config, app);
  return signInOf({ auth, how, clientSecret: undefined }, { url, caPath, secrets, mayBePrivate });
}
