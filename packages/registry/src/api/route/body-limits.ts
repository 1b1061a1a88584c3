import type { Route } from './route.ts';

/** Bytes that a request may bring (docs/behaviour/registry.md#limits). */
export interface BodyLimits {
  readonly any: number;
  /** Of a source, which may hold a whole catalogue. */
  readonly inlineData: number;
}

export const DEFAULT_BODIES: BodyLimits = { any: 1024 * 1024, inlineData: 10 * 1024 * 1024 };

/** The table with other limits than the default ones. */
export function withBodyLimits(routes: readonly Route[], limits: BodyLimits): Route[] {
  return routes.map((route) => {
    const { body } = route;
    return body === undefined ? route : { ...route, body: { ...body, maxBytes: limits[body.limit] } };
  });
}
