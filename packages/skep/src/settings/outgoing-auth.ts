import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';

/** How the proxy signs in at a remote MCP server. */
export const outgoingAuthSettings = settingsOf({ group: 'Authentication to a remote server', notYet: true }, [
  flag('bool', 'remote-auth', 'Sign in with OAuth or OIDC', { default: false }),
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
    key: 'remote_auth_config.client_secret',
    placeholder: 'secret',
    secret: true,
    excludes: ['remoteAuthClientSecretFile'],
  }),
  flag('path', 'remote-auth-client-secret-file', 'File with the client secret', {
    key: 'remote_auth_config.client_secret_file',
    placeholder: 'file',
  }),
  flag('string', 'remote-auth-bearer-token', 'Bearer token instead of OAuth', {
    env: 'SKEP_REMOTE_AUTH_BEARER_TOKEN',
    key: 'remote_auth_config.bearer_token',
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
