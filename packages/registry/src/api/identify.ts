import { authenticate, type Authentication, describeRefusal } from '@skep/auth/resource/authenticate.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { onRequestHookHandler } from 'fastify';
import { ANONYMOUS, type Authority } from '../access/authority.ts';
import { isPublicPath } from './public-path.ts';
import type { Access } from './route.ts';
import type { BearerDoor, SignIn } from './sign-in.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is asking; undefined until it is known, and for requests that were refused before. */
    authority: Authority | undefined;
  }
}

/** A row of the table, or a path that no row has. */
export type Asked = Access | 'nothing';

/**
 * Finds out who is asking, before anything else of the request is looked at: without a valid token even an unknown path
 * is 401 (specification §2.2). An outage of the identity provider is 503, neither 401 nor open.
 */
export function identify(signIn: () => SignIn, asked: Asked): onRequestHookHandler {
  return (request, reply, done) => {
    const door = signIn();
    if (door.kind === 'open' || needsNoToken(door, asked, request.raw.url ?? '')) {
      request.authority = ANONYMOUS;
      done();
      return;
    }
    const settle = (found: Authentication): void => {
      if (found.kind === 'identity') {
        request.authority = door.authorityOf(found.identity);
        done();
      } else if (found.kind === 'unavailable') {
        reply.header('retry-after', String(found.retryAfterSeconds));
        done(new SkepError('auth/unavailable', { detail: { provider: found.provider } }));
      } else {
        reply.header('www-authenticate', door.challenge(found));
        const message = describeRefusal(found, 'terse');
        done(
          new SkepError('auth/unauthenticated', {
            message,
            detail: { reason: found.reason, provider: found.provider },
          }),
        );
      }
    };
    const found = authenticate(authorizationOf(request.raw.rawHeaders), door.verifier);
    if (found instanceof Promise) found.then(settle).catch(done);
    else settle(found);
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
