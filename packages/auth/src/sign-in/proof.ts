import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { KeptClient } from './port.ts';
import { libraryClient } from './library-client.ts';

/** Proves with each request that whoever shows a token holds its key (DPoP, RFC 9449). */
export interface Prover {
  /** The private key, a JWK in JSON, as it is kept. */
  readonly key: string;
  /** For the token endpoint. */
  readonly handle: oauth.DPoPHandle;
  /** The headers for one request to the resource, with a proof of its own. */
  readonly headersFor: (token: string, request: ProvedRequest) => Promise<Record<string, string>>;
  /** Remembers the nonce that the resource at `url` wants in proofs from now on (RFC 9449 §9). */
  readonly learn: (nonce: string, url: URL) => Promise<void>;
}

export interface ProvedRequest {
  readonly method: string;
  readonly url: URL;
}

const ALGORITHM = 'ES256';
const CURVE = { name: 'ECDSA', namedCurve: 'P-256' } as const;

/** Whether the server can bind tokens to keys of ours. */
export function canBind(server: oauth.AuthorizationServer): boolean {
  const algorithms: unknown = server.dpop_signing_alg_values_supported;
  return Array.isArray(algorithms) && algorithms.includes(ALGORITHM);
}

export async function createProver(client: KeptClient): Promise<Prover> {
  const pair = await oauth.generateKeyPair(ALGORITHM, { extractable: true });
  const key = JSON.stringify(await crypto.subtle.exportKey('jwk', pair.privateKey));
  return proverWith(key, pair, client);
}

/** The prover of a key that was kept. Fails with `auth/sign-in-ended` for a text that is none. */
export async function keptProver(key: string, client: KeptClient): Promise<Prover> {
  const jwk = parsedJson(key);
  try {
    if (!isRecord(jwk)) throw new SkepError('auth/sign-in-ended');
    const { d: _, key_ops: _ops, ...open } = jwk;
    const pair = {
      privateKey: await crypto.subtle.importKey('jwk', jwk, CURVE, false, ['sign']),
      publicKey: await crypto.subtle.importKey('jwk', open, CURVE, true, ['verify']),
    };
    return proverWith(key, pair, client);
  } catch {
    throw new SkepError('auth/sign-in-ended', { message: 'the key of the sign-in is damaged' });
  }
}

function proverWith(key: string, pair: oauth.CryptoKeyPair, client: KeptClient): Prover {
  const handle = oauth.DPoP(libraryClient(client), pair);
  // The library makes proofs for requests that it sends. This one goes nowhere: its headers are what is wanted, and its
  // answer is how a nonce is told.
  const ask = async (
    token: string,
    { method, url }: ProvedRequest,
    nonce?: string,
  ): Promise<Record<string, string>> => {
    let headers: Record<string, string> = {};
    await oauth.protectedResourceRequest(token, method, url, undefined, undefined, {
      DPoP: handle,
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: (_url, request) => {
        ({ headers } = request);
        const told = nonce === undefined ? {} : { headers: { 'dpop-nonce': nonce } };
        return Promise.resolve(new Response(null, told));
      },
    });
    return headers;
  };
  return {
    key,
    handle,
    headersFor: (token, request) => ask(token, request),
    learn: async (nonce, url) => void (await ask('none', { method: 'GET', url }, nonce)),
  };
}

/** The option of oauth4webapi that binds a token. */
export function bindingTo(prover: Prover | undefined): { readonly DPoP?: oauth.DPoPHandle } {
  return prover === undefined ? {} : { DPoP: prover.handle };
}
