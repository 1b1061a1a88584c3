import type { Authority } from '../../access/authority.ts';
import type { Limits } from '../../shape/limits.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import { type Parameters, type Parsed, parseParameters } from '../route/parameter.ts';
import type { Access, Answer, Method, RequestBody, Route, RouteBase } from '../route/route.ts';
import { joinedName } from '../reads/registry-route.ts';
import type { AdminParts } from '../route/admin-parts.ts';

/** What a handler of the admin API gets besides the parameters. */
export interface AdminCall extends AdminParts {
  readonly authority: Authority;
  readonly snapshot: Snapshot;
  readonly body: Buffer;
  readonly limits: Limits;
}

interface AdminRoute<P extends Parameters, Q extends Parameters> extends RouteBase {
  readonly method: Method;
  readonly paths: readonly [string, ...string[]];
  readonly access: Access;
  readonly parameters: P;
  readonly query: Q;
  readonly body?: RequestBody;
  readonly handler: (call: AdminCall, path: Parsed<P>, query: Parsed<Q>) => Promise<Answer>;
}

/**
 * An endpoint that works on the store: the router has checked the role, then parameters are checked (400), then the
 * handler reads the body and decides (docs/behaviour/registry.md#admin-api).
 */
export function adminRoute<P extends Parameters, Q extends Parameters>(route: AdminRoute<P, Q>): Route {
  const { parameters, query, handler, ...row } = route;
  return {
    ...row,
    listener: 'public',
    path: parameters,
    query,
    handle: async ({ admin, snapshot, limits }, { authority, body, ...texts }) => {
      const path = parseParameters(parameters, joinedName(texts.path));
      const queryValues = parseParameters(query, texts.query);
      return handler(
        { ...admin(), authority, body, snapshot: snapshot(), limits: limits() },
        path,
        queryValues,
      );
    },
  };
}

export function jsonAnswer(status: number, value: unknown): Answer {
  return { status, body: () => JSON.stringify(value) };
}

export const NO_CONTENT: Answer = { status: 204 };
