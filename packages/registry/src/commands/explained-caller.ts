import { describeRefusal } from '@skep/auth/resource/authenticate.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { parseLossless } from '@skep/core/json/lossless.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { ANONYMOUS, authorityOf, type Authority } from '../access/authority.ts';
import { supposedCaller } from '../access/caller.ts';
import { openSignIn } from '../api/sign-in/sign-in.ts';
import type { AuthConfig } from '../config/auth.ts';
import type { Host } from './host.ts';

const MAX_BYTES = 64 * 1024;
const LIMITS = { maxBytes: MAX_BYTES, what: 'claims' } as const;

/** The flags that say who asks. */
export interface CallerFlags {
  readonly claims: string | undefined;
  readonly token: string | undefined;
}

/**
 * The caller that `explain` is about. Fails with `claims/invalid`, `file/*`, or for a token with what the identity
 * providers say about it.
 */
export async function explainedCaller(
  host: Host,
  { claims, token }: CallerFlags,
  auth: AuthConfig,
): Promise<Authority> {
  if (auth.mode === 'anonymous') return ANONYMOUS;
  if (token !== undefined) return tokenCaller(host, await tokenIn(token), auth);
  if (claims === undefined) {
    throw new SkepError('usage/missing-argument', { message: 'who asks? give --claims or --token' });
  }
  const text = /^\s*[[{]/.test(claims) ? claims : await readText(claims, LIMITS);
  const value = parseLossless(text, LIMITS);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SkepError('claims/invalid', { message: 'claims must be a JSON object' });
  }
  return supposedCaller(auth.access, { ...value });
}

async function tokenIn(path: string): Promise<string> {
  return (await readText(path, { maxBytes: MAX_BYTES, what: 'token' })).trim();
}

async function tokenCaller(
  host: Host,
  token: string,
  auth: Extract<AuthConfig, { mode: 'oauth' }>,
): Promise<Authority> {
  const door = await openSignIn(auth, { clock: host.clock, random: host.random, log: silentLog });
  if (door.kind === 'open') return ANONYMOUS;
  try {
    const outcome = await door.verifier.verify(token);
    if (outcome.kind === 'identity') return authorityOf(door.mode, outcome.identity);
    if (outcome.kind === 'unavailable') throw new SkepError('auth/unavailable', { cause: outcome.cause });
    throw new SkepError('auth/unauthenticated', {
      message: describeRefusal({ kind: 'refused', error: 'invalid_token', reason: outcome.reason }, 'reason'),
    });
  } finally {
    door.close();
  }
}
