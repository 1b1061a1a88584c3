import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';

/** How a client's token becomes one for the server (RFC 8693). */
export const tokenExchangeSettings = settingsOf({ group: 'Token exchange (RFC 8693)', notYet: true }, [
  flag('string', 'token-exchange-url', 'Token endpoint; giving it switches the exchange on', {
    key: 'token_exchange_config.token_url',
    placeholder: 'url',
  }),
  flag('string', 'token-exchange-client-id', 'Client ID', {
    key: 'token_exchange_config.client_id',
    placeholder: 'id',
  }),
  flag('string', 'token-exchange-client-secret', 'Client secret', {
    env: 'SKEP_TOKEN_EXCHANGE_CLIENT_SECRET',
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
    default: 'access_token',
  }),
]);
