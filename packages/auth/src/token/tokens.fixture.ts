import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JSONWebKeySet,
  type JWTHeaderParameters,
  SignJWT,
} from 'jose';
import type { IssuerFetch, IssuerRequest } from './issuer-fetch.ts';

// A small issuer in memory, for the tests of this folder.

export const ISSUER = 'https://idp.test';
export const AUDIENCE = 'skep-test';
/** 2026-01-01T00:00:00Z. */
export const NOW = 1_767_225_600_000;
const NOW_S = NOW / 1_000;

export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JSONWebKeySet['keys'][number];
}

export async function signingKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const pair = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(pair.publicKey)), kid, use: 'sig' };
  return { kid, alg, privateKey: pair.privateKey, jwk };
}

/** A good token; members of `changes` that are undefined are left out. */
export function signed(
  key: SigningKey,
  changes: Readonly<Record<string, unknown>> = {},
  header: Readonly<Partial<JWTHeaderParameters>> = {},
): Promise<string> {
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', iat: NOW_S, exp: NOW_S + 300, ...changes };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
    .sign(key.privateKey);
}

/** A token of any header and payload, with a signature part of any text. */
export function forged(header: unknown, payload: unknown, signature = 'AAAA'): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part(header)}.${part(payload)}.${signature}`;
}

export interface FakeIssuer extends IssuerFetch {
  keys: SigningKey[];
  /** What introspection answers. */
  active: unknown;
  /** `path` → error thrown or status answered instead. */
  readonly broken: Map<string, number | Error>;
  readonly requests: { url: string; request: IssuerRequest }[];
}

/** An identity provider behind `IssuerFetch`: metadata, keys, introspection. */
export function fakeIssuer(keys: SigningKey[]): FakeIssuer {
  const issuer: FakeIssuer = {
    keys,
    active: { active: false },
    broken: new Map(),
    requests: [],
    close() {},
    async fetch(url, request = {}) {
      issuer.requests.push({ url, request });
      await Promise.resolve();
      const { pathname } = new URL(url);
      const broken = issuer.broken.get(pathname);
      if (broken instanceof Error) throw broken;
      if (broken !== undefined) return json({ error: 'server_error' }, broken);
      if (pathname === '/.well-known/openid-configuration') return json(METADATA);
      if (pathname === '/.well-known/oauth-authorization-server') return json(METADATA);
      if (pathname === '/jwks') return json({ keys: issuer.keys.map((key) => key.jwk) });
      if (pathname === '/introspect') return json(issuer.active);
      return json({}, 404);
    },
  };
  return issuer;
}

const METADATA = {
  issuer: ISSUER,
  jwks_uri: `${ISSUER}/jwks`,
  introspection_endpoint: `${ISSUER}/introspect`,
};

export function json(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
}
