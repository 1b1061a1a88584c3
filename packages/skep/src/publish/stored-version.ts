import { isDeepStrictEqual } from 'node:util';
import { NO_CLAIMS, parseClaims, type Claims } from '@skep/auth/claims/claims.ts';
import { firstDifference } from '@skep/auth/claims/same.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { RegistryServer } from '../account/ask-registry.ts';
import type { Publication } from './document.ts';

interface Wanted extends Pick<Publication, 'kind' | 'name' | 'version' | 'text'> {
  readonly claims: Claims | undefined;
}

/**
 * What a registry that speaks its API at `api` holds of this version of a server: the same document with the same claims, or another;
 * `unknown` where that cannot be told. Fails with the signal's reason.
 */
export async function storedVersion(
  { ask, server }: Pick<RegistryServer, 'ask' | 'server'>,
  api: string,
  { kind, name, version, text, claims }: Wanted,
  signal: AbortSignal,
): Promise<'same' | 'other' | 'unknown'> {
  if (kind !== 'server') return 'unknown';
  const entry = encodeURIComponent(name);
  try {
    const at = `${api}/v0.1/servers/${entry}/versions/${encodeURIComponent(version)}`;
    const item = await ask({ url: at, signal });
    if (!isRecord(item) || !isRecord(item['server'])) return 'unknown';
    if (!isDeepStrictEqual(item['server'], parsedJson(text))) return 'other';
    const held = await ask({ url: `${server}/v1/entries/server/${entry}/claims`, signal }).catch(
      (error: unknown) => {
        // Registries without claims have no such endpoint.
        if (claims !== undefined || statusOf(error) !== 404) throw error;
        return { claims: {} };
      },
    );
    const stored = parseClaims(isRecord(held) ? held['claims'] : undefined);
    return firstDifference(stored, claims ?? NO_CLAIMS) === undefined ? 'same' : 'other';
  } catch {
    signal.throwIfAborted();
    return 'unknown';
  }
}
