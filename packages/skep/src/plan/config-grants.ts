import { redactUrl } from '@skep/core/log/redact.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';
import { moreThanDefault } from '../permissions/limits.ts';
import { grantsOf } from '../permissions/grants.ts';
import type { RemoteAuthConfig } from '../run-config/remote-auth.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { collectorOf } from '../run-config/telemetry.ts';
import { allOf } from '../run-config/webhooks.ts';
import {
  EXCHANGE_CLIENT_SECRET,
  OIDC_CLIENT_SECRET,
  OTEL_HEADERS,
  parseReference,
  REMOTE_BEARER_TOKEN,
  REMOTE_CLIENT_SECRET,
} from '../secrets/reference.ts';
import { howImported } from './plan-remote-auth.ts';

/** What running an imported configuration gives away of this machine, a phrase each; empty for one that keeps to itself. */
export function configGrants(config: RunConfig, cwd: string): readonly string[] {
  return [
    ...grantsOf(config.permission_profile, cwd, config.isolate_network === true),
    ...(config.isolate_network === true && config.allow_runtime_gateway === true
      ? ["connect to the container engine's gateway addresses"]
      : []),
    ...(config.sandbox_user === undefined ? [] : [`run as the user ${config.sandbox_user}`]),
    ...(config.package?.directory === undefined
      ? []
      : [`build and run the Go project at "${config.package.directory}"`]),
    ...(config.k8s_pod_template_patch === undefined
      ? []
      : [`change the pod that a cluster makes of it: ${config.k8s_pod_template_patch}`]),
    ...moreThanDefault(config),
    ...(config.remote_allow_private_ip === true
      ? [`send requests to ${redactUrl(config.remote_url ?? '')}, which is no public address`]
      : []),
    ...Object.entries(config.header_forward?.add_headers_from_secret ?? {}).map(
      ([header, secret]) =>
        `send ${new URL(config.remote_url ?? '').host} the secret "${secret}" as ${header}`,
    ),
    ...(config.secrets ?? [])
      .map(parseReference)
      .map(({ name, target }) =>
        target === OTEL_HEADERS
          ? `show its collector the secret "${name}"`
          : target === OIDC_CLIENT_SECRET ||
              target === EXCHANGE_CLIENT_SECRET ||
              target === REMOTE_CLIENT_SECRET
            ? `show its identity provider the secret "${name}"`
            : target === REMOTE_BEARER_TOKEN
              ? `send the server the secret "${name}" as its token`
              : `give the server the secret "${name}" as ${target}`,
      ),
    ...(config.jwks_auth_token_file
      ? [`send its identity provider the content of "${config.jwks_auth_token_file}"`]
      : []),
    ...remoteAuthGrants(config),
    ...(config.oidc_config?.jwks_allow_private_ip === true
      ? ['ask an identity provider at a private address']
      : []),
    ...webhookGrants(config),
    ...redisGrants(config),
    ...telemetryGrants(config),
    ...(config.audit_config?.logFile ? [`append what is audited to "${config.audit_config.logFile}"`] : []),
    ...(config.token_exchange_config?.token_url
      ? [`send the tokens of its clients to "${config.token_exchange_config.token_url}"`]
      : []),
    ...(config.allowed_origins ?? []).map((origin) => `let web pages of ${origin} use the server`),
    ...(isLoopback(config.host) ? [] : [`listen on ${config.host}, which other machines can reach`]),
  ];
}

/** Who gets to keep what of sessions, and is shown what. */
function redisGrants({ scaling_config: scaling }: RunConfig): readonly string[] {
  const redis = scaling?.session_redis;
  if (redis === undefined) return [];
  return [
    `keep sessions of its clients in Redis at "${redis.address}"`,
    ...(redis.password_file ? [`show that Redis the content of "${redis.password_file}"`] : []),
  ];
}

/** Where a person would sign in and as what, and who is shown what they sign in with. */
function remoteAuthGrants(config: RunConfig): readonly string[] {
  const { remote_auth_config: auth = {}, remote_url: url } = config;
  const { issuer, authorize_url: authorize, token_url: token } = auth;
  const how = howImported(config);
  if (url === undefined || how === 'never') return [];
  const { host } = new URL(url);
  const files = [auth.client_secret_file, auth.bearer_token_file].filter((path) => path);
  return [
    ...[issuer, authorize].flatMap((at) => (at ? [`have you sign in at "${at}"`] : [])),
    ...(how === 'if-wanted' ? [`have you sign in where ${host} says, if it wants that`] : []),
    ...(how === 'sign-in' && !issuer && !token ? [`have its client sign in where ${host} says`] : []),
    ...(how === 'token' ? [] : tokenGrants(auth, url)),
    ...(token ? [`send what you signed in with to "${token}"`] : []),
    ...files.map(
      (path) =>
        `send ${auth.bearer_token_file === path ? host : 'its identity provider'} the content of "${path ?? ''}"`,
    ),
  ];
}

/** Which token the server at `url` would get: as whose client it is asked for, with what, and for what else than that server. */
export function tokenGrants(
  { client_id: client, scopes = [], oauth_params = {}, resource }: RemoteAuthConfig,
  url: string,
): readonly string[] {
  const { host, origin } = new URL(url);
  const parameters = Object.entries(oauth_params).map(([name, value]) => `${name}=${value}`);
  return [
    ...(client ? [`sign you in as the client "${client}"`] : []),
    ...(scopes.length > 0 ? [`ask for the scopes "${scopes.join(' ')}"`] : []),
    ...(parameters.length > 0 ? [`ask with "${parameters.join('&')}"`] : []),
    ...(resource && URL.parse(resource)?.origin !== origin ? [`send ${host} a token for "${resource}"`] : []),
  ];
}

/** Whoever is asked about calls hears what they say, and may be asked with what this machine has. */
function webhookGrants(config: RunConfig): readonly string[] {
  return allOf(config).flatMap((one) => {
    const { hmac_secret_ref: secret, tls_config: tls, url } = one;
    const what = (config.mutating_webhooks ?? []).includes(one) ? 'show and let it change' : 'show';
    return [
      `ask "${url}" about every call of its clients: ${what} all that they say`,
      ...(secret === undefined ? [] : [`sign what it asks "${url}" with "${secret}"`]),
      ...(tls?.client_key_path === undefined
        ? []
        : [`sign in at "${url}" with the key "${tls.client_key_path}"`]),
    ];
  });
}

/** Whoever gets to see what is measured learns what the person does. */
function telemetryGrants({ telemetry_config: config, telemetry_environment }: RunConfig): readonly string[] {
  const collector = config && collectorOf(config);
  const variables = Object.keys(telemetry_environment ?? {});
  if (collector === undefined) return [];
  return [
    `tell ${collector} which of its tools are called`,
    ...(variables.length === 0 ? [] : [`tell it what the variables ${variables.join(', ')} hold`]),
  ];
}
