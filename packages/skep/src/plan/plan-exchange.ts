import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { silentLog } from '@skep/core/log/log.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { toDocument } from '@skep/core/settings/stored.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { SignInConfig } from '../run-config/sign-in.ts';
import { exchangeOf, type ExchangeConfig } from '../run-config/token-exchange.ts';
import { tokenExchangeSettings } from '../settings/authentication.ts';
import type { RunValues } from '../settings/run-settings.ts';

/** What a run decided of tokens for its server. */
export interface PlannedExchange {
  /** As it is saved; its member is undefined where tokens are not exchanged. */
  readonly config: Pick<ExchangeConfig, 'token_exchange_config'>;
  readonly clientSecret: string | undefined;
  /** Lines for the person. */
  readonly warnings: readonly string[];
}

const MAX_SECRET_FILE_BYTES = 64 * 1024;

/**
 * What the flags say of exchanging tokens. Fails with `usage/invalid-value`, `auth/invalid-provider`, `fetch/refused-address`,
 * `fetch/ca-bundle` or `file/*` for what no proxy could be started with.
 */
export async function planExchange(
  { values, settings }: { readonly values: RunValues; readonly settings: Settings },
  signIn: SignInConfig,
  cwd: string,
): Promise<PlannedExchange> {
  const url = settings.get('tokenExchangeUrl');
  if (url?.origin === 'flag' && url.value === '')
    throw new SkepError('usage/invalid-value', {
      message: '--token-exchange-url is empty',
      hint: 'give it a value, or leave it out: the server would get no token',
    });
  if (url === undefined) {
    const idle = tokenExchangeSettings.filter(({ name }) => settings.get(name)?.origin === 'flag');
    const config = { token_exchange_config: undefined };
    return { config, clientSecret: undefined, warnings: idle.map(({ flag }) => withoutEffect(flag)) };
  }
  const said = toDocument(tokenExchangeSettings, values) as ExchangeConfig;
  const config = { token_exchange_config: said.token_exchange_config };
  const clientSecret = await secretOf(values, cwd);
  return { config, clientSecret, warnings: await checkExchange({ ...signIn, ...config }, clientSecret) };
}

function withoutEffect(flag: string): string {
  return `Warning: --${flag} has no effect without --token-exchange-url\n`;
}

async function secretOf(values: RunValues, cwd: string): Promise<string | undefined> {
  const { tokenExchangeClientSecret: secret, tokenExchangeClientSecretFile: file } = values;
  if (file === undefined) return secret || undefined;
  const path = resolve(cwd, file);
  const text = await readText(path, { maxBytes: MAX_SECRET_FILE_BYTES, what: 'client secret' });
  if (text.trim() !== '') return text.trim();
  throw new SkepError('usage/invalid-value', { message: `the client secret "${path}" is empty` });
}

/**
 * Makes of a configuration what a proxy will, to hear what is wrong with it before anything is made; nobody is asked. Gives
 * back what the person should know. Fails as `planExchange`.
 */
export async function checkExchange(
  config: ExchangeConfig,
  clientSecret?: string,
): Promise<readonly string[]> {
  const settings = exchangeOf(config, clientSecret);
  if (settings === undefined) return [];
  const [{ openTokenExchange }, { checkHost }] = await Promise.all([
    import('@skep/proxy/steps/token-exchange.ts'),
    import('@skep/core/fetch/address-guard.ts'),
  ]);
  const services = { clock: systemClock, log: silentLog, transport: 'streamable-http' } as const;
  const part = await openTokenExchange(settings, services);
  await part.close?.();
  if (!settings.allowPrivate) checkHost(new URL(settings.url));
  return config.oidc_config === undefined
    ? ['Warning: --token-exchange-url has no effect without --oidc-issuer: clients have no token\n']
    : [];
}
