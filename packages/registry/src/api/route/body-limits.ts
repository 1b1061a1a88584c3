import type { Limits } from '../../shape/limits.ts';
import type { Route } from './route.ts';

/** The table with the bytes that each body may have. */
export function withBodyLimits(routes: readonly Route[], limits: Limits): Route[] {
  return routes.map((route) => {
    const { body } = route;
    return body === undefined ? route : { ...route, body: { ...body, maxBytes: limits[body.limit] } };
  });
}
