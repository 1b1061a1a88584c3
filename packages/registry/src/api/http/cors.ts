import type { CorsSettings } from '../../config/cors.ts';
import type { Prepare } from './send.ts';
import type { Run } from './request.ts';

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
export function allowOrigins({ allowedOrigins, maxAge }: CorsSettings, prepare: Prepare): Run {
  const allows = (origin: string): boolean => allowedOrigins === '*' || allowedOrigins.includes(origin);
  return ({ method, headers, added }) => {
    const { origin, 'access-control-request-method': asked } = headers;
    if (origin === undefined || !allows(origin)) return undefined;
    added.push('access-control-allow-origin', allowedOrigins === '*' ? '*' : origin);
    if (method !== 'OPTIONS' || asked === undefined) {
      added.push('access-control-expose-headers', ANSWER_HEADERS);
      return undefined;
    }
    added.push('access-control-allow-methods', METHODS, 'access-control-allow-headers', REQUEST_HEADERS);
    added.push('access-control-max-age', `${maxAge}`);
    return prepare({ status: 204 });
  };
}
