import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { optional, textThat } from '@skep/core/settings/shape.ts';
import { EXCHANGE_CLIENT_SECRET, OIDC_CLIENT_SECRET, REMOTE_BEARER_TOKEN } from '../secrets/reference.ts';

/** Who may use the proxy. */
export const incomingAuthSettings = settingsOf({ group: 'Authentication of clients (OIDC)' }, [
  flag('string', 'oidc-issuer', 'Issuer of client tokens', { key: 'oidc_config.issuer', placeholder: 'url' }),
  flag('string', 'oidc-audience', 'Audience client tokens must have', {
    key: 'oidc_config.audience',
    placeholder: 'audience',
  }),
  flag('string', 'oidc-client-id', 'Client ID of the proxy', {
    key: 'oidc_config.client_id',
    placeholder: 'id',
  }),
  flag('string', 'oidc-client-secret', 'Client secret for token introspection', {
    env: OIDC_CLIENT_SECRET,
    placeholder: 'secret',
    secret: true,
  }),
  flag('string', 'oidc-introspection-url', 'Token introspection endpoint', {
    key: 'oidc_config.introspection_url',
    placeholder: 'url',
  }),
  flag('string', 'oidc-jwks-url', 'Key set of the issuer', {
    key: 'oidc_config.jwks_url',
    placeholder: 'url',
  }),
  flag('strings', 'oidc-scopes', 'Scopes named in the resource metadata (RFC 9728)', {
    key: 'oidc_config.scopes',
    placeholder: 'a,b',
    defaultText: 'openid',
  }),
  flag('bool', 'oidc-insecure-allow-http', 'Allow issuers without HTTPS (insecure, for local use)', {
    key: 'oidc_config.insecure_allow_http',
    default: false,
  }),
  flag('bool', 'jwks-allow-private-ip', 'Allow issuer endpoints on private addresses', {
    key: 'oidc_config.jwks_allow_private_ip',
    default: false,
  }),
  flag('path', 'jwks-auth-token-file', 'File with a bearer token for requests to the issuer', {
    key: 'jwks_auth_token_file',
    placeholder: 'file',
  }),
  flag('string', 'resource-url', 'URL of this resource in its metadata (RFC 9728)', {
    key: 'oidc_config.resource_url',
    placeholder: 'url',
  }),
]);

/** How the proxy signs in at a remote MCP server. */
export const outgoingAuthSettings = settingsOf({ group: 'Authentication to a remote server' }, [
  flag('bool', 'remote-auth', 'Sign in with OAuth or OIDC; asked of the server otherwise', {
    default: false,
    defaultText: 'what the server wants',
  }),
  flag('string', 'remote-auth-issuer', 'Issuer of the authorization server', {
    key: 'remote_auth_config.issuer',
    placeholder: 'url',
    excludes: ['remoteAuthAuthorizeUrl', 'remoteAuthTokenUrl'],
  }),
  flag('string', 'remote-auth-authorize-url', 'Authorization endpoint, without OIDC', {
    key: 'remote_auth_config.authorize_url',
    placeholder: 'url',
  }),
  flag('string', 'remote-auth-token-url', 'Token endpoint, without OIDC', {
    key: 'remote_auth_config.token_url',
    placeholder: 'url',
  }),
  flag(
    'string',
    'remote-auth-client-id',
    'Client ID; registered automatically where the server allows it (RFC 7591)',
    { key: 'remote_auth_config.client_id', placeholder: 'id' },
  ),
  flag('string', 'remote-auth-client-secret', 'Client secret', {
    placeholder: 'secret',
    secret: true,
    excludes: ['remoteAuthClientSecretFile'],
  }),
  flag('path', 'remote-auth-client-secret-file', 'File with the client secret', {
    key: 'remote_auth_config.client_secret_file',
    placeholder: 'file',
  }),
  flag('bool', 'remote-auth-client-credentials', 'Sign in the client itself, for services without a person', {
    key: 'remote_auth_config.client_credentials',
    default: false,
  }),
  flag('string', 'remote-auth-bearer-token', 'Bearer token instead of OAuth', {
    env: REMOTE_BEARER_TOKEN,
    placeholder: 'token',
    secret: true,
    excludes: ['remoteAuthBearerTokenFile'],
  }),
  flag('path', 'remote-auth-bearer-token-file', 'File with the bearer token', {
    key: 'remote_auth_config.bearer_token_file',
    placeholder: 'file',
  }),
  flag('strings', 'remote-auth-scopes', 'Scopes to ask for', {
    key: 'remote_auth_config.scopes',
    placeholder: 'a,b',
    defaultText: 'openid,profile,email with OIDC',
  }),
  flag('string', 'remote-auth-resource', 'Resource indicator (RFC 8707)', {
    key: 'remote_auth_config.resource',
    placeholder: 'uri',
  }),
  flag('int', 'remote-auth-callback-port', 'Port that receives the browser after signing in', {
    key: 'remote_auth_config.callback_port',
    placeholder: 'port',
    default: 8_666,
    min: 1_024,
    max: 65_535,
  }),
  flag('bool', 'remote-auth-skip-browser', 'Print the sign-in address instead of opening a browser', {
    key: 'remote_auth_config.skip_browser',
    default: false,
  }),
  flag('duration', 'remote-auth-timeout', 'How long signing in may take', {
    key: 'remote_auth_config.timeout',
    placeholder: 'duration',
    default: 30_000,
    min: 1,
  }),
  flag('pairs', 'remote-forward-headers', 'Header added to requests; repeatable', {
    key: 'header_forward.add_plaintext_headers',
    placeholder: 'Name=Value',
    secret: true,
  }),
  flag('pairs', 'remote-forward-headers-secret', 'Header whose value is in the secrets manager; repeatable', {
    key: 'header_forward.add_headers_from_secret',
    placeholder: 'Name=secret-name',
  }),
]);

/** As people and as the standard write it (RFC 8693 §3); files may name `jwt` too. */
const SUBJECT_TYPE = /^$|^(?:urn:ietf:params:oauth:token-type:)?(?:access_token|id_token|jwt)$/u;

/** How a client's token becomes one for the server (RFC 8693). */
export const tokenExchangeSettings = settingsOf({ group: 'Token exchange (RFC 8693)' }, [
  flag('string', 'token-exchange-url', 'Token endpoint; giving it switches the exchange on', {
    key: 'token_exchange_config.token_url',
    placeholder: 'url',
  }),
  flag('string', 'token-exchange-client-id', 'Client ID', {
    key: 'token_exchange_config.client_id',
    placeholder: 'id',
  }),
  flag('string', 'token-exchange-client-secret', 'Client secret', {
    env: EXCHANGE_CLIENT_SECRET,
    placeholder: 'secret',
    secret: true,
    excludes: ['tokenExchangeClientSecretFile'],
  }),
  flag('path', 'token-exchange-client-secret-file', 'File with the client secret', { placeholder: 'file' }),
  flag('string', 'token-exchange-audience', 'Audience of the new token', {
    key: 'token_exchange_config.audience',
    placeholder: 'audience',
  }),
  flag('strings', 'token-exchange-scopes', 'Scopes of the new token', {
    key: 'token_exchange_config.scopes',
    placeholder: 'a,b',
  }),
  flag('string', 'token-exchange-header-name', 'Header that carries the new token', {
    key: 'token_exchange_config.external_token_header_name',
    placeholder: 'name',
    defaultText: 'replaces Authorization',
  }),
  flag('choice', 'token-exchange-subject-token-type', "Kind of the client's token", {
    placeholder: 'type',
    key: 'token_exchange_config.subject_token_type',
    choices: ['access_token', 'id_token'],
    stored: optional(textThat((type) => SUBJECT_TYPE.test(type), 'is no type of token')),
    default: 'access_token',
  }),
]);
