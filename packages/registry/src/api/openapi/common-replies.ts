import type { Reply, Route } from '../route/route.ts';

const error = (description: string): Reply => ({ description, schema: 'Error' });

/**
 * What a row may answer before its handler runs, by whom it answers and what it takes. Rows do not repeat these; the
 * OpenAPI document holds both.
 */
export function commonReplies({
  access,
  body,
  method,
}: Pick<Route, 'access' | 'body' | 'method'>): Readonly<Record<number, Reply>> {
  if (access === 'public') return {};
  return {
    401: error('There is no valid token; `WWW-Authenticate` says how to get one'),
    ...(access === 'registry' ? { 403: error('The caller lacks the claims of the registry') } : {}),
    ...(typeof access === 'object' ? { 403: error(`The caller lacks the role ${access.role}`) } : {}),
    ...(method !== 'GET' && body === undefined
      ? { 413: error('There is a large body, and the endpoint takes none') }
      : {}),
    ...(body === undefined
      ? {}
      : {
          413: error(`The body is larger than ${String(body.maxBytes)} bytes`),
          415: error('The body does not say that it is JSON'),
        }),
    429: error('Too many requests; `Retry-After` says when to go on'),
    503: error('The identity provider or the store cannot be used; `Retry-After` says when to try again'),
  };
}
