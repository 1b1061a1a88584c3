import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { toDocument } from '@skep/core/settings/stored.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';
import {
  hasBearerToken,
  readSecretFile,
  requireTls,
  type RemoteAuthConfig,
} from '../run-config/remote-auth.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { REMOTE_BEARER_TOKEN, REMOTE_CLIENT_SECRET, type SecretReference } from '../secrets/reference.ts';
import { outgoingAuthSettings } from '../settings/authentication.ts';
import { hasLogin, parseHttpUrl } from '@skep/core/fetch/http-url.ts';
import { runSettings, type RunValues } from '../settings/run-settings.ts';

/** What a run decided of signing in to its server elsewhere. */
export interface PlannedRemoteAuth {
  /** As it is saved where a token is shown, or somebody signs in. */
  readonly auth: RemoteAuthConfig;
  /** `if-wanted`: the server is asked. */
  readonly how: 'never' | 'if-wanted' | 'sign-in' | 'token';
  readonly clientSecret: string | undefined;
  readonly bearerToken: string | undefined;
  /** Lines for the person. */
  readonly warnings: readonly string[];
}

interface AskedRemoteAuth {
  readonly values: RunValues;
  readonly settings: Settings;
  readonly secrets: readonly SecretReference[];
  /** Of the server. */
  readonly url: URL;
  /** Clients' tokens are exchanged for those of the server. */
  readonly exchanges: boolean;
  /** Its entry says that it wants a sign-in. */
  readonly isWanted: boolean;
  /** It is sent headers of its person, which may be all that it wants. */
  readonly hasHeaders: boolean;
}

type Row = (typeof outgoingAuthSettings)[number];
type Name = Row['name'];

/** What names who is to be signed in with: each of them alone means that somebody signs in. */
export const ISSUERS = ['remoteAuthIssuer', 'remoteAuthAuthorizeUrl', 'remoteAuthTokenUrl'] as const;

/**
 * What the flags say of signing in to a server elsewhere, with paths made absolute. Fails with `usage/*` for what goes with
 * nothing, and `file/*` for a file that cannot be read. Nobody is asked.
 */
export async function planRemoteAuth(asked: AskedRemoteAuth, cwd: string): Promise<PlannedRemoteAuth> {
  const { values, settings, secrets, url } = asked;
  refuseEmpty(settings);
  const auth = withAbsoluteFiles(authOf(values), cwd);
  const targets = new Set(secrets.map(({ target }) => target));
  const { bearer_token_file: tokenFile } = auth;
  // A file counts before the variable, whose token is then nobody's to keep.
  const bearerToken = tokenFile === undefined ? values.remoteAuthBearerToken || undefined : undefined;
  const hasToken = bearerToken !== undefined || targets.has(REMOTE_BEARER_TOKEN) || tokenFile !== undefined;
  const how = howOf(asked, hasToken);
  const clientSecret = values.remoteAuthClientSecret || undefined;
  const hasSecret = clientSecret !== undefined || auth.client_secret_file !== undefined || targets.has(REMOTE_CLIENT_SECRET); // prettier-ignore
  if (hasSecret && values.remoteAuthClientId === undefined)
    throw new SkepError('usage/missing-argument', {
      message: 'a client secret belongs to a client, and no client is named',
      hint: 'name it with --remote-auth-client-id',
    });
  checkRemoteAuth(auth, url, how);
  await checkToken(bearerToken, tokenFile);
  if (auth.client_secret_file !== undefined) await readSecretFile(auth.client_secret_file, 'client secret');
  return {
    auth: how === 'token' ? tokenAlone(auth) : auth,
    how,
    clientSecret,
    bearerToken: how === 'token' ? bearerToken : undefined,
    warnings: [...unused(how, asked), ...inTheClear(how, url), ...ofMachine(how, asked)],
  };
}

function authOf(values: RunValues): RemoteAuthConfig {
  const said = toDocument(runSettings, values) as Pick<RunConfig, 'remote_auth_config'>;
  return said.remote_auth_config ?? {};
}

function howOf(
  { values, settings, exchanges, isWanted, hasHeaders }: AskedRemoteAuth,
  hasToken: boolean,
): PlannedRemoteAuth['how'] {
  const isTold = settings.get('remoteAuth')?.origin === 'flag';
  if (exchanges || (isTold && !values.remoteAuth)) return 'never';
  const isOfMachine = settings.get('remoteAuthBearerToken')?.origin === 'env';
  const isOAuth =
    values.remoteAuth ||
    values.remoteAuthClientCredentials ||
    ISSUERS.some((name) => values[name] !== undefined);
  // The variable may be set for good; what is asked of this one run counts before it.
  if (hasToken && !(isOfMachine && isOAuth && values.remoteAuthBearerTokenFile === undefined)) return 'token';
  if (isOAuth || (isWanted && !hasHeaders)) return 'sign-in';
  return hasHeaders ? 'never' : 'if-wanted';
}

/** As `how` of a plan, for an imported configuration of a server elsewhere. */
export function howImported(config: RunConfig): PlannedRemoteAuth['how'] {
  const { remote_auth_config: auth = {}, secret_env } = config;
  if (hasBearerToken(config) || secret_env.includes(REMOTE_BEARER_TOKEN)) return 'token';
  if (config.token_exchange_config !== undefined) return 'never';
  if (auth.issuer || auth.authorize_url || auth.client_credentials) return 'sign-in';
  return config.header_forward ? 'never' : 'if-wanted';
}

/** A variable of the shell that was not set would ask another server, or show no token. */
function refuseEmpty(settings: Settings): void {
  for (const { name, flag } of outgoingAuthSettings) {
    const setting = settings.get(name);
    if (setting?.origin !== 'flag' || setting.value !== '') continue;
    throw new SkepError('usage/invalid-value', {
      message: `--${flag} is empty`,
      hint: 'give it a value, or leave it out',
    });
  }
}

/** Where people and tokens are sent, by the flag that says it. */
const ADDRESSES = {
  issuer: '--remote-auth-issuer',
  authorize_url: '--remote-auth-authorize-url',
  token_url: '--remote-auth-token-url',
} as const;

/**
 * Checks what flags or a file say of signing in at the server at `url`, as far as it can be seen without asking anybody. Fails
 * with `usage/*`.
 */
export function checkRemoteAuth(auth: RemoteAuthConfig, url: URL, how: PlannedRemoteAuth['how']): void {
  const { authorize_url: authorize, token_url: token, client_id: client, resource } = auth;
  for (const [key, flag] of Object.entries(ADDRESSES)) {
    const text = auth[key as keyof typeof ADDRESSES];
    if (!text) continue;
    const address = parseHttpUrl(text);
    if (address === undefined || hasLogin(address))
      throw invalid(
        `invalid value for ${flag}: "${printable(text)}"`,
        'give an address that begins with https://',
      );
    requireTls(address, flag);
  }
  if (resource && (URL.parse(resource) === null || resource.includes('#')))
    throw invalid(
      `invalid value for --remote-auth-resource: "${printable(resource)}"`,
      'give an absolute URI without a fragment (RFC 8707)',
    );
  const scope = auth.scopes?.find((one) => !SCOPE.test(one));
  if (scope !== undefined)
    throw invalid(
      `"${printable(scope)}" is no scope`,
      'a scope has neither spaces nor quotes; separate scopes by commas',
    );
  if (how === 'sign-in') requireTls(url, 'signing in');
  const missing = [
    // Nobody visits that page for a service.
    ...(authorize || auth.client_credentials ? [] : ['--remote-auth-authorize-url']),
    ...(token ? [] : ['--remote-auth-token-url']),
    ...(client ? [] : ['--remote-auth-client-id']),
  ];
  if ((!authorize && !token) || missing.length === 0) return;
  throw new SkepError('usage/missing-argument', {
    message: `endpoints that are named by hand need ${missing.join(' and ')} too`,
    hint: 'or name the issuer alone, with --remote-auth-issuer',
  });
}

/** RFC 6749 §3.3. */
const SCOPE = /^[\u0021\u0023-\u005b\u005d-\u007e]+$/u;

/** Relative paths start from `cwd`. */
export function withAbsoluteFiles(auth: RemoteAuthConfig, cwd: string): RemoteAuthConfig {
  const { client_secret_file: secret, bearer_token_file: token } = auth;
  return {
    ...auth,
    ...(secret && { client_secret_file: resolve(cwd, secret) }),
    ...(token && { bearer_token_file: resolve(cwd, token) }),
  };
}

/** What a token needs of it. */
function tokenAlone({ bearer_token_file }: RemoteAuthConfig): RemoteAuthConfig {
  return bearer_token_file === undefined ? {} : { bearer_token_file };
}

async function checkToken(given: string | undefined, path: string | undefined): Promise<void> {
  const token = path === undefined ? given : await readSecretFile(path, 'bearer token');
  // RFC 6750 §2.1 allows less; other servers take more.
  if (token === undefined || /^[\u0021-\u007e]+$/u.test(token)) return;
  throw invalid(
    'the bearer token cannot be sent: it has spaces or control characters',
    'check where it comes from',
  );
}

/** Flags that say how, where nobody signs in. */
function unused(
  how: PlannedRemoteAuth['how'],
  { settings, exchanges, hasHeaders }: AskedRemoteAuth,
): readonly string[] {
  if (how !== 'never' && how !== 'token') return [];
  const isOfToken = (name: Name): boolean => how === 'token' && name.startsWith('remoteAuthBearer');
  const idle = outgoingAuthSettings.filter(
    ({ name }) =>
      name.startsWith('remoteAuth') && !isOfToken(name) && settings.get(name)?.origin === 'flag' &&
      settings.get(name)?.value !== false,
  ); // prettier-ignore
  const why = exchanges
    ? 'where the tokens of clients are exchanged'
    : how === 'token'
      ? 'beside a bearer token'
      : hasHeaders
        ? 'beside --remote-forward-headers without --remote-auth'
        : 'with --remote-auth=false';
  return idle.map(({ flag }) => `Warning: --${flag} has no effect ${why}\n`);
}

function inTheClear(how: PlannedRemoteAuth['how'], url: URL): readonly string[] {
  const isOpen = url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[|\]$/gu, ''));
  if (how !== 'token' || !isOpen) return [];
  return [
    `Warning: the bearer token is sent to ${url.host} in the clear; use an address that begins with https://\n`,
  ];
}

/** The variable may be set for another server. */
function ofMachine(how: PlannedRemoteAuth['how'], { settings, url }: AskedRemoteAuth): readonly string[] {
  return how === 'token' && isTokenOfMachine(settings)
    ? [`${printable(url.host)} is shown the token of ${TOKEN_VARIABLE}\n`]
    : [];
}

/** True where the token that is shown is that of a variable, which nobody set for this run. */
export const isTokenOfMachine = (settings: Settings): boolean =>
  settings.get('remoteAuthBearerToken')?.origin === 'env' &&
  settings.get('remoteAuthBearerTokenFile')?.origin !== 'flag';

/** May be set for good. */
export const TOKEN_VARIABLE = 'SKEP_REMOTE_AUTH_BEARER_TOKEN';

function invalid(message: string, hint: string): SkepError {
  return new SkepError('usage/invalid-value', { message, hint });
}
