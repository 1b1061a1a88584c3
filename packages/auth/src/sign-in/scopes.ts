import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Challenge } from './challenge.ts';
import type { KeptSignIn, SignInTarget, SignInWay } from './port.ts';
import type { FoundServer } from './server-metadata.ts';

interface Known extends FoundServer {
  readonly target: Pick<SignInTarget, 'scopes'>;
  readonly challenge: Challenge | undefined;
  /** Of the resource's own metadata. */
  readonly ofResource: readonly string[] | undefined;
}

const OPENID = ['openid', 'profile', 'email'];
const REFRESH = 'offline_access';

/** The scopes to ask for: given, else challenged, else all that the resource names, else what OpenID has; else none. */
export function chooseScopes(known: Known, way: SignInWay): readonly string[] {
  const { target, challenge, ofResource, isOpenId, server } = known;
  if (target.scopes !== undefined) return target.scopes;
  const supported: unknown = server.scopes_supported;
  const listed = Array.isArray(supported) ? supported : undefined;
  const isPerson = way === 'browser' || way === 'device';
  const openId = OPENID.filter((one) => listed?.includes(one) ?? true);
  const chosen = challenge?.scopes ?? ofResource ?? (isOpenId && isPerson ? openId : []);
  return isPerson && listed?.includes(REFRESH) === true ? union(chosen, [REFRESH]) : chosen;
}

/** At most so often is a person asked for the same scopes. */
const MAX_STEP_UPS = 2;

/**
 * The scopes of the next sign-in where the resource refused a token with `insufficient_scope`: what it wants, what is `given`, and all
 * that was granted (MCP, step-up authorization). Undefined where it did not. Fails with `auth/insufficient-scope` when the resource still wants
 * them in its challenge after they were asked for twice; somebody who signs in on their own account may try as often as they like.
 */
export function stepUp(
  kept: KeptSignIn | undefined,
  challenge: Challenge | undefined,
  given: readonly string[] = [],
): KeptSignIn['stepUp'] {
  const demanded = wantedBy(challenge);
  const wanted = demanded ?? kept?.wanted;
  if (kept === undefined || wanted === undefined) return undefined;
  const before = kept.stepUp?.scopes ?? [];
  const scopes = union(union(before, kept.scopes), union(given, wanted));
  const times = before.length === scopes.length ? (kept.stepUp?.times ?? 0) + 1 : 1;
  if (times <= MAX_STEP_UPS || demanded === undefined) return { scopes, times };
  const message = `the server wants "${scopes.join(' ')}", and still refuses after that was granted ${MAX_STEP_UPS} times`;
  throw new SkepError('auth/insufficient-scope', { message });
}

/** The scopes that a token lacked; undefined for any other challenge. */
export function wantedBy(challenge: Challenge | undefined): readonly string[] | undefined {
  return challenge?.error === 'insufficient_scope' ? (challenge.scopes ?? []) : undefined;
}

export function union(first: readonly string[], second: readonly string[]): readonly string[] {
  return Array.from(new Set([...first, ...second]));
}
