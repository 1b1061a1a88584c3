import type { FieldValue } from '@skep/core/settings/field.ts';

/** Keys of the configuration file that say how one signs in to the catalogue in use. */
export type AccountKeys = Readonly<Record<`registry_auth.${string}`, FieldValue | undefined>>;

/** None of them. */
export const NO_ACCOUNT: AccountKeys = {
  'registry_auth.type': undefined,
  'registry_auth.oauth.server': undefined,
  'registry_auth.oauth.issuer': undefined,
  'registry_auth.oauth.client_id': undefined,
  'registry_auth.oauth.audience': undefined,
  'registry_auth.oauth.scopes': undefined,
  'registry_auth.oauth.agreed': undefined,
};
