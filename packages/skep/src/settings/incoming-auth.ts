import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';

/** Who may use the proxy. */
export const incomingAuthSettings = settingsOf({ group: 'Authentication of clients (OIDC)', notYet: true }, [
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
    env: 'SKEP_OIDC_CLIENT_SECRET',
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
