import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { toDocument } from '@skep/core/settings/stored.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { SignInSettings } from '@skep/proxy/steps/sign-in.ts';
import { signInOf, type SignInConfig } from '../run-config/sign-in.ts';
import { isOverTls } from '../settings/session-redis.ts';
import { incomingAuthSettings } from '../settings/authentication.ts';
import { buildSettings } from '../settings/build.ts';
import type { RunValues } from '../settings/run-settings.ts';

/** What a run decided of the clients of its proxy. */
export interface PlannedSignIn {
  /** As it is saved; its members are undefined where nobody has to sign in. */
  readonly config: SignInConfig;
  readonly clientSecret: string | undefined;
  /** Lines for the person. */
  readonly warnings: readonly string[];
}

/** Flags of which each alone means that clients have to sign in. */
const SWITCHES = [
  'oidcIssuer',
  'oidcAudience',
  'oidcJwksUrl',
  'oidcIntrospectionUrl',
  'oidcClientId',
  'resourceUrl',
] as const satisfies readonly (keyof RunValues)[];

/**
 * What the flags say of signing in, with paths made absolute. Fails with `usage/invalid-value`, `auth/invalid-provider`,
 * `fetch/refused-address`, `fetch/ca-bundle` or `file/*` for what no proxy could be started with.
 */
export async function planSignIn(values: RunValues, settings: Settings, cwd: string): Promise<PlannedSignIn> {
  refuseEmpty(settings);
  const secret = settings.get('oidcClientSecret');
  // The variable may be set for good, so alone it asks for nothing.
  const isOn =
    SWITCHES.some((name) => (values[name] ?? '') !== '') ||
    (secret?.origin === 'flag' && secret.value !== '');
  if (!isOn) return { config: NOBODY, clientSecret: undefined, warnings: unused(settings) };
  const { jwksAuthTokenFile: tokenFile, skepCaBundle: bundle } = values;
  const absolute = (path: string | undefined): string | undefined => (path ? resolve(cwd, path) : undefined);
  const said = toDocument(incomingAuthSettings, values) as SignInConfig;
  const config = {
    oidc_config: said.oidc_config ?? {},
    jwks_auth_token_file: absolute(tokenFile),
    skep_ca_bundle: absolute(bundle),
  };
  const clientSecret = values.oidcClientSecret === '' ? undefined : values.oidcClientSecret;
  return { config, clientSecret, warnings: await checkSignIn(config, clientSecret) };
}

/** A variable of the shell that was not set would open the endpoint, or drop a check of tokens. */
function refuseEmpty(settings: Settings): void {
  for (const { name, flag } of incomingAuthSettings) {
    const setting = settings.get(name);
    const guards = name === 'oidcClientSecret' || SWITCHES.some((one) => one === name);
    if (!guards || setting?.origin !== 'flag' || setting.value !== '') continue;
    throw new SkepError('usage/invalid-value', {
      message: `--${flag} is empty`,
      hint: 'give it a value, or leave it out: an empty one would let clients in unasked',
    });
  }
}

const NOBODY: SignInConfig = {
  oidc_config: undefined,
  jwks_auth_token_file: undefined,
  skep_ca_bundle: undefined,
};

export function unusedText(flag: string): string {
  return `Warning: --${flag} has no effect without --oidc-issuer: nobody has to sign in\n`;
}

/** Flags that say how, where nothing says that clients have to sign in. */
function unused(settings: Settings): readonly string[] {
  const redis = settings.get('sessionRedis')?.value;
  // Redis has a certificate, too.
  const isForRedis = typeof redis === 'string' && isOverTls(redis);
  const authorities = isForRedis ? [] : buildSettings.filter(({ flag }) => flag === 'skep-ca-bundle');
  const rows = [...incomingAuthSettings, ...authorities];
  const given = rows.filter(({ name, ...row }) => {
    const setting = settings.get(name);
    const isDefault = 'default' in row && setting?.value === row.default;
    return setting?.origin === 'flag' && setting.value !== '' && !isDefault;
  });
  return given.map(({ flag }) => unusedText(flag));
}

/**
 * Makes of a configuration what a proxy will, to hear what is wrong with it before anything is made; nobody is asked. Gives
 * back what the person should know. Fails as `planSignIn`.
 */
export async function checkSignIn(config: SignInConfig, clientSecret?: string): Promise<readonly string[]> {
  const settings = signInOf(config, clientSecret);
  if (settings === undefined) return [];
  const [{ openSignIn }, { checkHost }] = await Promise.all([
    import('@skep/proxy/steps/sign-in.ts'),
    import('@skep/core/fetch/address-guard.ts'),
  ]);
  const services = { clock: systemClock, random: () => 0, log: silentLog };
  try {
    (await openSignIn(settings, services)).close();
    if (!settings.allowPrivateIP) for (const url of addressesOf(settings)) checkHost(new URL(url));
  } catch (error) {
    throw withFlag(error, settings);
  }
  const { audience, resourceUrl } = settings;
  return audience === undefined && resourceUrl === undefined
    ? [
        'Warning: without --oidc-audience or --resource-url a token for any other server is good for this one\n',
      ]
    : [];
}

function addressesOf({ issuer, jwksUrl, introspectionUrl }: SignInSettings): readonly string[] {
  return [issuer, jwksUrl, introspectionUrl].filter((url) => url !== undefined);
}

/** With the flag that allows what was refused, where there is one. */
function withFlag(error: unknown, settings: SignInSettings): unknown {
  if (!(error instanceof SkepError)) return error;
  const { code, message } = error;
  const isPlain = addressesOf(settings).some((url) => url.startsWith('http:')) && !settings.allowHttp;
  if (code === 'auth/invalid-provider' && isPlain)
    return new SkepError(code, {
      message,
      hint: 'for local use --oidc-insecure-allow-http allows it',
      cause: error,
    });
  if (code === 'fetch/refused-address')
    return new SkepError(code, {
      message,
      hint: 'add --jwks-allow-private-ip if the identity provider is there',
      cause: error,
    });
  return error;
}
