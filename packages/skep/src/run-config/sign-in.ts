import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { SignInSettings } from '@skep/proxy/steps/sign-in.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import { parseReference } from '../secrets/reference.ts';
import type { RunConfig } from './run-config.ts';

/** The members of a run configuration that say who may call its proxy. */
export type SignInConfig = {
  readonly [Key in 'oidc_config' | 'jwks_auth_token_file' | 'skep_ca_bundle']?: RunConfig[Key] | undefined;
};

/**
 * What clients of a workload have to sign in with (docs/behaviour/proxy.md#sign-in); undefined where nobody has to. An
 * `oidc_config` is a guard however little it says: fails with `usage/invalid-value` for one that names nobody to ask.
 */
export function signInOf(config: SignInConfig, clientSecret?: string): SignInSettings | undefined {
  const { oidc_config: oidc, jwks_auth_token_file: tokenFile, skep_ca_bundle: caPath } = config;
  if (oidc === undefined) return undefined;
  const [issuer, jwksUrl, introspectionUrl] = [oidc.issuer, oidc.jwks_url, oidc.introspection_url].map(given);
  if (issuer === undefined && jwksUrl === undefined && introspectionUrl === undefined) {
    throw new SkepError('usage/invalid-value', {
      message: 'issuer, JWKS URL or introspection URL required to check the tokens of clients',
      hint: 'give --oidc-issuer, --oidc-jwks-url or --oidc-introspection-url',
    });
  }
  return {
    issuer,
    jwksUrl,
    introspectionUrl,
    audience: given(oidc.audience),
    clientId: given(oidc.client_id),
    clientSecret: given(clientSecret),
    resourceUrl: given(oidc.resource_url),
    scopes: oidc.scopes?.length ? oidc.scopes : undefined,
    requiredScopes: oidc.required_scopes,
    allowHttp: oidc.insecure_allow_http ?? false,
    allowPrivateIP: oidc.jwks_allow_private_ip ?? false,
    caPath: given(caPath),
    tokenFile: given(tokenFile),
  };
}

/** Other tools write an empty text for "not given". */
function given(text: string | undefined): string | undefined {
  return text?.trim() === '' ? undefined : text?.trim();
}

/** A secret of a workload's proxy: in clear where no secrets store is set up, else looked up. */
export async function proxySecretOf(
  target: string,
  { env_vars, secrets = [] }: Pick<RunConfig, 'env_vars' | 'secrets'>,
  lookUp: () => Promise<SecretEnv>,
): Promise<string | undefined> {
  const isKept = secrets.some((text) => parseReference(text).target === target);
  return isKept ? (await lookUp())[target] : env_vars[target];
}
