import { authenticate, type Authentication, describeRefusal } from '@skep/auth/resource/authenticate.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { onRequestHookHandler, preHandlerHookHandler } from 'fastify';
import { ANONYMOUS, type Authority } from '../../access/authority.ts';
import { isPublicPath } from '../sign-in/public-path.ts';
import type { RefusalLimit } from './refusal-limit.ts';
import type { Access } from '../route/route.ts';
import type { BearerDoor, SignIn } from '../sign-in/sign-in.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is asking; undefined until it is known, and for requests that were refused before. */
    authority: Authority | undefined;
    /** What decided that. */
    door: SignIn | undefined;
  }
}

/** A row of the table, or a path that no row has. */
export type Asked = Access | 'nothing';

export interface Identification {
  /** How callers are told apart, as configured now. */
  readonly signIn: () => SignIn;
  /** Absent: as many tokens as come are looked at. */
  readonly refusals?: RefusalLimit | undefined;
}

/**
 * Finds out who is asking, before anything else of the request is looked at: without a valid token even an unknown path
 * is 401 (specification §2.2). An outage of the identity provider is 503, neither 401 nor open. Where the sign-in was
 * replaced while a token was checked, the new one decides.
 */
export function identify(identification: Identification, asked: Asked): onRequestHookHandler {
  const { signIn, refusals } = identification;
  return function identifyCaller(request, reply, done) {
    const door = signIn();
    request.door = door;
    if (door.kind === 'open' || needsNoToken(door, asked, request.raw.url ?? '')) {
      request.authority = ANONYMOUS;
      done();
      return;
    }
    const settle = (found: Authentication): void => {
      if (signIn() !== door) {
        identifyCaller.call(this, request, reply, done);
      } else if (found.kind === 'identity') {
        request.authority = door.authorityOf(found.identity);
        done();
      } else {
        if (found.kind === 'refused') reply.header('www-authenticate', door.challenge(found));
        done(refusalError(found));
      }
    };
    const verifier = refusals?.guard(door.verifier, request.socket.remoteAddress) ?? door.verifier;
    const found = authenticate(authorizationOf(request.raw.rawHeaders), verifier);
    if (found instanceof Promise) found.then(settle).catch(done);
    else settle(found);
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
export function identifyAgain(
  { signIn, ...rest }: Identification,
  access: Access,
  admit: readonly onRequestHookHandler[],
): preHandlerHookHandler {
  const hooks = [identify({ signIn, ...rest }, access), ...admit];
  return function identifyCallerAgain(request, reply, done) {
    const next = (at: number): void => {
      const hook = hooks[at];
      if (hook === undefined) done();
      else
        hook.call(this, request, reply, (error?: Error) =>
          error === undefined ? next(at + 1) : done(error),
        );
    };
    next(request.door === signIn() ? hooks.length : 0);
  };
}

const AUTHORIZATION = 'authorization';

/** Every value as received: Node keeps only the first of repeated headers in `headers`, and a proxy may use the last. */
export function authorizationOf(rawHeaders: readonly string[]): string[] {
  const values: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const isIt = name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION;
    if (isIt) values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}

/**
 * A public path frees what the table does not govern and, in auth-only mode, reading a registry. Whatever writes or needs a
 * role needs a token everywhere. With authorization it opens no registry either, whatever is created later: a caller
 * without a token would otherwise have more rights there than one with.
 */
function needsNoToken(door: BearerDoor, asked: Asked, url: string): boolean {
  if (asked === 'public') return true;
  const isFreed = asked === 'nothing' || (asked === 'registry' && door.mode.kind === 'auth-only');
  return isFreed && isPublicPath(url, door.publicPaths);
}
