import { authenticate, describeRefusal, type Authentication } from '@skep/auth/resource/authenticate.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { headerValues } from '@skep/core/fetch/header-values.ts';
import { ANONYMOUS, type Authority } from '../../access/authority.ts';
import { enforce } from '../../access/decision.ts';
import { decideRole } from '../../access/gate.ts';
import type { Access } from '../route/route.ts';
import type { BearerSignIn, SignIn } from '../sign-in/sign-in.ts';
import type { LimitRefusals } from './rate-limit.ts';
import type { ApiRequest } from './request.ts';

export interface Identification {
  /** How callers are told apart, as configured now. */
  readonly signIn: () => SignIn;
  /** Absent: as many tokens as come are looked at. */
  readonly limitRefusals?: LimitRefusals | undefined;
}

type Identify = (request: ApiRequest) => undefined | Promise<undefined>;

/**
 * Finds out who is asking, before anything else of the request is looked at: without a valid token even an unknown path
 * is 401. An outage of the identity provider is 503, neither 401 nor open. Where the sign-in was replaced while a token
 * was checked, the new one decides.
 */
export function identify({ signIn, limitRefusals }: Identification): Identify {
  return function identifyCaller(request) {
    const current = signIn();
    request.signIn = current;
    if (current.kind === 'open' || needsNoToken(current, request)) {
      request.authority = ANONYMOUS;
      return undefined;
    }
    const settle = (found: Authentication): undefined | Promise<undefined> => {
      if (signIn() !== current) return identifyCaller(request);
      if (found.kind !== 'identity') {
        if (found.kind === 'refused') request.added.push('www-authenticate', current.challenge(found));
        throw refusalError(found);
      }
      request.authority = current.authorityOf(found.identity);
      return undefined;
    };
    const { verifier } = current;
    const guarded = limitRefusals?.(verifier, request.socket.remoteAddress) ?? verifier;
    const found = authenticate(headerValues(request.raw.rawHeaders, 'authorization'), guarded);
    return found instanceof Promise ? found.then(settle) : settle(found);
  };
}

/** The reason is for logs: the caller hears the message. */
function refusalError(found: Exclude<Authentication, { kind: 'identity' }>): SkepError {
  const { provider } = found;
  if (found.kind === 'unavailable') {
    const { retryAfterSeconds } = found;
    return new SkepError('auth/unavailable', { detail: { provider, retryAfterSeconds } });
  }
  const message = describeRefusal(found, 'terse');
  return new SkepError('auth/unauthenticated', { message, detail: { reason: found.reason, provider } });
}

/**
 * Asks again who is asking where the sign-in was replaced since: a body may arrive slowly, and rights that were taken away
 * meanwhile must not be used.
 */
export function identifyAgain(identification: Identification): Identify {
  const identifyCaller = identify(identification);
  return (request) => {
    if (request.signIn === identification.signIn()) return undefined;
    const found = identifyCaller(request);
    return found instanceof Promise ? found.then(() => requireRole(request)) : requireRole(request);
  };
}

/** The role comes before parameters, body and existence, so that its absence is all that a caller learns. */
export function requireRole(request: ApiRequest): undefined {
  const access = request.row?.access;
  if (typeof access === 'object') enforce(decideRole(callerOf(request), access.role));
}

/** Fails where no step has found out who is asking. */
export function callerOf({ authority }: ApiRequest): Authority {
  if (authority === undefined) throw new SkepError('internal/bug', { message: 'nobody was identified' });
  return authority;
}

/**
 * A public path frees what the table does not govern and, in auth-only mode, reading a registry. Whatever writes or needs a
 * role needs a token everywhere. With authorization it opens no registry either, whatever is created later: a caller
 * without a token would otherwise have more rights there than one with.
 */
function needsNoToken({ mode, publicPaths }: BearerSignIn, { row, url }: ApiRequest): boolean {
  const asked: Access | undefined = row?.access;
  if (asked === 'public') return true;
  const isFreed = asked === undefined || (asked === 'registry' && mode.kind === 'auth-only');
  return isFreed && isPublicPath(url, publicPaths);
}

/** Paths that never need a token: where clients learn how to sign in and what there is to call. */
const BUILT_IN = ['/openapi.json', '/.well-known'];

/**
 * Whether a request target lies under one of the paths that need no token (docs/behaviour/registry.md#public-paths):
 * equal, or below by whole segments. `url` is the target as it was sent, never a normalised one, and one that holds an
 * escaped slash or dot is under none, because a proxy may read another path in it than we do.
 */
function isPublicPath(url: string, publicPaths: readonly string[]): boolean {
  const path = url.split('?', 1)[0] ?? '';
  if (/%2f|%2e/i.test(path)) return false;
  return [...BUILT_IN, ...publicPaths].some((prefix) => isUnder(path, prefix));
}

function isUnder(path: string, prefix: string): boolean {
  if (prefix === '/') return true;
  return path === prefix || (path.startsWith(prefix) && path[prefix.length] === '/');
}
