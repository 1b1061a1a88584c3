import type { SignInTarget } from '@skep/auth/sign-in/port.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { parseDuration } from '@skep/core/time/duration.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';
import { parseReference, REMOTE_BEARER_TOKEN } from '../secrets/reference.ts';
import type { RunConfig } from './run-config.ts';

/** How the proxy of a server elsewhere signs in there; where there is none, it does not. */
export type RemoteAuthConfig = NonNullable<RunConfig['remote_auth_config']>;

const MAX_SECRET_FILE_BYTES = 64 * 1024;

type Members = Pick<RunConfig, 'remote_auth_config' | 'secrets' | 'env_vars'>;

/** True where the server is shown a token that somebody gave, and nobody signs in. */
export function hasBearerToken({ remote_auth_config: auth, secrets = [], env_vars }: Members): boolean {
  if (auth === undefined) return false;
  const isKept = secrets.some((text) => parseReference(text).target === REMOTE_BEARER_TOKEN);
  return (
    isKept ||
    given(auth.bearer_token_file) !== undefined ||
    given(env_vars[REMOTE_BEARER_TOKEN]) !== undefined
  );
}

/** True where somebody signs in to the server (docs/behaviour/run.md#remote-sign-in). */
export function isSignedInTo(config: Members): boolean {
  return config.remote_auth_config !== undefined && !hasBearerToken(config);
}

/** What the core of signing in is told; what is not there it finds out. */
export function signInTarget(
  url: string,
  auth: RemoteAuthConfig,
  clientSecret: string | undefined,
): SignInTarget {
  return {
    resource: url,
    issuer: given(auth.issuer),
    authorizeUrl: given(auth.authorize_url),
    tokenUrl: given(auth.token_url),
    clientId: given(auth.client_id),
    clientSecret,
    scopes: auth.scopes?.length ? auth.scopes : undefined,
    scopeParamName: given(auth.scope_param_name),
    resourceIndicator: given(auth.resource),
    authorizeParams: auth.oauth_params,
    callbackPort: auth.callback_port,
  };
}

/** RFC 6750 §5.3: whoever sees a token can use it. Fails with `usage/invalid-value`. */
export function requireTls(url: URL, what: string): void {
  if (url.protocol === 'https:' || isLoopback(url.hostname)) return;
  throw new SkepError('usage/invalid-value', {
    message: `${what} needs https: ${printable(url.host)} could be overheard`,
    hint: 'give an address that begins with https://',
  });
}

/** True where a token for `resource` is meant for the server at `url` too: of the same origin, and not beside it (RFC 8707 §2). */
export function isWithin(url: URL, resource: string): boolean {
  const named = URL.parse(resource);
  if (named?.origin !== url.origin) return false;
  const parent = named.pathname.replace(/\/$/u, '');
  return url.pathname === parent || url.pathname.startsWith(`${parent}/`);
}

/** How long a person may take, milliseconds; undefined for the usual time. */
export function patienceOf({ timeout }: RemoteAuthConfig): number | undefined {
  return timeout === undefined ? undefined : parseDuration(timeout);
}

/** The client secret in the file that the person named. */
export async function clientSecretIn({
  client_secret_file: path,
}: RemoteAuthConfig): Promise<string | undefined> {
  return path ? readSecretFile(path, 'client secret') : undefined;
}

/** The text of a file that holds a secret and nothing else. Fails with `usage/invalid-value` and `file/*`. */
export async function readSecretFile(path: string, what: string): Promise<string> {
  const text = (await readText(path, { maxBytes: MAX_SECRET_FILE_BYTES, what })).trim();
  if (text !== '') return text;
  throw new SkepError('usage/invalid-value', {
    message: `the ${what} "${path}" is empty`,
    hint: 'put it there, and nothing else',
  });
}

/** Other tools write an empty text for "not given". */
function given(text: string | undefined): string | undefined {
  return text?.trim() || undefined;
}
