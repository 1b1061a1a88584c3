import type { JSONWebKeySet } from 'jose';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { IssuerFetch } from './issuer-fetch.ts';
import type { LoadedKeys } from './key-set.ts';

/** Reads a JWK Set document (RFC 7517 §5). Fails with `fetch/bad-status`, `fetch/not-json` or a failure of `fetch`. */
export async function fetchKeys(
  fetch: IssuerFetch['fetch'],
  url: string,
  signal: AbortSignal,
): Promise<LoadedKeys> {
  const headers = { accept: 'application/jwk-set+json, application/json' };
  const response = await fetch(url, { headers, signal });
  if (response.status !== 200) {
    throw new SkepError('fetch/bad-status', { message: `"${url}" answered with status ${response.status}` });
  }
  const text = await response.text();
  const jwks = parse(text);
  if (jwks === undefined)
    throw new SkepError('fetch/not-json', { message: `"${url}" did not answer with a key set` });
  return { jwks, maxAgeMs: maxAge(response.headers.get('cache-control')) };
}

function parse(text: string): JSONWebKeySet | undefined {
  try {
    const document: unknown = JSON.parse(text);
    return isKeySet(document) ? document : undefined;
  } catch {
    return undefined;
  }
}

function isKeySet(value: unknown): value is JSONWebKeySet {
  return (
    typeof value === 'object' &&
    value !== null &&
    'keys' in value &&
    Array.isArray(value.keys) &&
    value.keys.every((key) => typeof key === 'object' && key !== null)
  );
}

/** Milliseconds of `max-age` (RFC 9111 §5.2.2.1). */
function maxAge(header: string | null): number | undefined {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})/iu.exec(header ?? '')?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
