import { expect, test } from 'vitest';
import { isUntrusted, tlsReason } from './tls-reason.ts';

test.each([
  ['SELF_SIGNED_CERT_IN_CHAIN', 'its certificate is of an authority that is not trusted here', true],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name', false],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS', false],
  ['ECONNREFUSED', undefined, false],
  [undefined, undefined, false],
])('%s: %s', (code, reason, isOfAuthority) => {
  expect(tlsReason(code)).toBe(reason);
  expect(isUntrusted(code)).toBe(isOfAuthority);
});
