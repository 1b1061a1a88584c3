import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { TokenExchangeSettings } from '@skep/proxy/steps/token-exchange.ts';
import type { RunConfig } from './run-config.ts';

/** The members of a run configuration that say how tokens of clients become tokens of the server. */
export type ExchangeConfig = {
  readonly [Key in 'token_exchange_config' | 'oidc_config' | 'skep_ca_bundle']?: RunConfig[Key] | undefined;
};

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
const URN = 'urn:ietf:params:oauth:token-type:';
const TYPES = ['access_token', 'id_token', 'jwt'] as const;

/**
 * How tokens of clients become tokens of the server (docs/behaviour/proxy.md#token-exchange); undefined where they do not. Fails
 * with `usage/invalid-value` for a `token_exchange_config` that names no endpoint, or no header where it wants one of its own.
 */
export function exchangeOf(config: ExchangeConfig, clientSecret?: string): TokenExchangeSettings | undefined {
  const { token_exchange_config: said, oidc_config: oidc, skep_ca_bundle: caPath } = config;
  if (said === undefined) return undefined;
  const url = given(said.token_url);
  if (url === undefined) throw invalid('the token endpoint is missing', 'give --token-exchange-url');
  const name = given(said.external_token_header_name);
  if (said.header_strategy === 'custom' && name === undefined)
    throw invalid('the header of the new token is missing', 'give --token-exchange-header-name');
  const type = said.subject_token_type?.replace(URN, '') ?? '';
  return {
    url,
    clientId: given(said.client_id),
    clientSecret: given(clientSecret),
    audience: given(said.audience),
    scopes: said.scopes,
    resource: given(said.resource),
    subjectTokenType: TYPES.find((one) => one === type) ?? 'access_token',
    headerName: said.header_strategy === 'replace' ? undefined : name,
    plainHttp: oidc?.insecure_allow_http === true ? 'any' : 'loopback',
    // An address that names this machine itself is what was meant.
    allowPrivate: oidc?.jwks_allow_private_ip === true || LOOPBACK.has(URL.parse(url)?.hostname ?? ''),
    caPath: given(caPath),
  };
}

/** Other tools write an empty text for "not given". */
function given(text: string | undefined): string | undefined {
  return text?.trim() || undefined;
}

function invalid(message: string, hint: string): SkepError {
  return new SkepError('usage/invalid-value', { message, hint });
}
