import type { Replies, Route } from '../route/route.ts';

/**
 * What a row may answer before its handler runs, by whom it answers and what it takes. Rows do not repeat these; the
 * OpenAPI document holds both.
 */
export function commonReplies({ access, body, method }: Pick<Route, 'access' | 'body' | 'method'>): Replies {
  if (access === 'public') return {};
  return {
    401: 'There is no valid token; `WWW-Authenticate` says how to get one',
    ...(access === 'registry' ? { 403: 'The caller lacks the claims of the registry' } : {}),
    ...(typeof access === 'object' ? { 403: `The caller lacks the role ${access.role}` } : {}),
    ...(method !== 'GET' && body === undefined
      ? { 413: 'There is a large body, and the endpoint takes none' }
      : {}),
    ...(body === undefined
      ? {}
      : {
          413: `The body is larger than ${String(body.maxBytes)} bytes`,
          415: 'The body does not say that it is JSON',
        }),
    429: 'Too many requests; `Retry-After` says when to go on',
    503: 'The identity provider or the store cannot be used; `Retry-After` says when to try again',
  };
}
