/** Why a request carries no usable bearer token. */
export type BearerFault = 'missing' | 'repeated' | 'wrong-scheme' | 'empty' | 'too-long' | 'malformed';

export type Bearer =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'fault'; readonly fault: BearerFault };

/** Characters; longer tokens are refused before anything looks into them. */
export const MAX_TOKEN_LENGTH = 16 * 1024;

const SCHEME = /^bearer(?: +|$)/iu;
/** `b64token` of RFC 6750 §2.1: printable, without comma or quote, so two joined headers never pass. */
const B64_TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/u;

/**
 * The bearer token of a request (RFC 6750 §2.1). Takes every value of `Authorization` as received, because a server that
 * drops repeated headers could read another one than the proxy before it. The scheme is case-insensitive (RFC 9110
 * §11.1). Tokens in query or body are never looked for.
 */
export function bearerToken(authorization: readonly string[]): Bearer {
  const [header, ...more] = authorization;
  if (header === undefined) return fault('missing');
  if (more.length > 0) return fault('repeated');
  const scheme = SCHEME.exec(header);
  if (scheme === null) return fault('wrong-scheme');
  const token = header.slice(scheme[0].length);
  if (token === '') return fault('empty');
  if (token.length > MAX_TOKEN_LENGTH) return fault('too-long');
  return B64_TOKEN.test(token) ? { kind: 'token', token } : fault('malformed');
}

function fault(reason: BearerFault): Bearer {
  return { kind: 'fault', fault: reason };
}
