const UNTRUSTED = 'its certificate is of an authority that is not trusted here';

/** Codes of Node and OpenSSL for a connection that never came to be. */
const TLS_REASONS: ReadonlyMap<string, string> = new Map([
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['CERT_NOT_YET_VALID', 'its certificate is not valid yet'],
  ['CERT_SIGNATURE_FAILURE', UNTRUSTED],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNTRUSTED],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNTRUSTED],
  ['UNABLE_TO_GET_ISSUER_CERT', UNTRUSTED],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNTRUSTED],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNTRUSTED],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS'],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'it does not speak TLS'],
  ['EPROTO', 'it does not speak TLS as we do'],
]);

/** Why no TLS connection came to be, said of whoever was asked; undefined where the code tells of something else. */
export function tlsReason(code: string | undefined): string | undefined {
  return code === undefined ? undefined : TLS_REASONS.get(code);
}

/** True where further authorities would help. */
export function isUntrusted(code: string | undefined): boolean {
  return tlsReason(code) === UNTRUSTED;
}
