import type { onRequestHookHandler } from 'fastify';
import type { CorsSettings } from '../../config/cors.ts';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const REQUEST_HEADERS = 'Authorization, Content-Type, If-None-Match, X-Request-Id, Traceparent, Tracestate';
const ANSWER_HEADERS = 'ETag, Location, Retry-After, WWW-Authenticate, X-Request-Id';

/** What every answer depends on that a caller of this kind of server may get. */
export function variesBy(cors: CorsSettings | undefined): string {
  return cors === undefined || cors.allowedOrigins === '*' ? 'Authorization' : 'Authorization, Origin';
}

/**
 * Lets pages of the allowed origins read answers in a browser (Fetch standard, "CORS protocol"), and answers the question
 * that a browser asks before, which carries no token and is therefore asked before sign-in. Credentials of the browser are
 * never allowed: callers send a token, and no page may use one that a browser holds for another. Whoever is not allowed
 * gets the same answers without these headers, because an origin says nothing about callers that are no browser.
 */
export function allowOrigins(cors: CorsSettings): onRequestHookHandler {
  const { allowedOrigins, maxAge } = cors;
  const allows = (origin: string): boolean => allowedOrigins === '*' || allowedOrigins.includes(origin);
  return (request, reply, done) => {
    const { origin, 'access-control-request-method': asked } = request.headers;
    reply.header('vary', variesBy(cors));
    if (origin === undefined || !allows(origin)) {
      done();
      return;
    }
    reply.header('access-control-allow-origin', allowedOrigins === '*' ? '*' : origin);
    if (request.method === 'OPTIONS' && asked !== undefined) {
      reply
        .code(204)
        .headers({
          'access-control-allow-methods': METHODS,
          'access-control-allow-headers': REQUEST_HEADERS,
          'access-control-max-age': String(maxAge),
        })
        .send();
      return;
    }
    reply.header('access-control-expose-headers', ANSWER_HEADERS);
    done();
  };
}
