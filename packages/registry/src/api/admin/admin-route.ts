import type { ClaimValue } from '@skep/auth/claims/claims.ts';
import type { Authority } from '../../access/authority.ts';
import { shownClaims, type ClaimSet } from '../../access/claim-set.ts';
import type { Limits } from '../../shape/limits.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import { parseParameters, type Parameters, type Parsed } from '../route/parameter.ts';
import type { Access, Answer, ApiContext, Method, Route, RouteBase, AdminParts } from '../route/route.ts';
import type { BodyRow } from './bodies.ts';
import { joinedName } from '../route/route.ts';

/** What a handler of the admin API gets besides the parameters. */
export interface AdminCall<B = unknown> extends AdminParts {
  readonly authority: Authority;
  readonly snapshot: Snapshot;
  /** As received, or what the row makes of it. */
  readonly body: B;
  readonly limits: Limits;
}

interface AdminRoute<P extends Parameters, Q extends Parameters, B> extends RouteBase {
  readonly method: Method;
  readonly paths: readonly [string, ...string[]];
  readonly access: Access;
  readonly parameters: P;
  readonly query: Q;
  readonly body?: BodyRow<B>;
  /** What decides before the body is looked into. */
  readonly enter?: (call: AdminCall, path: Parsed<P>) => Promise<void>;
  readonly handler: (call: AdminCall<B>, path: Parsed<P>, query: Parsed<Q>) => Promise<Answer>;
}

/**
 * An endpoint that works on the store: the router has checked the role, then parameters are checked (400), then the body
 * becomes a value (400), then the handler decides (docs/behaviour/registry.md#admin-api).
 */
export function adminRoute<P extends Parameters, Q extends Parameters, B = undefined>(
  route: AdminRoute<P, Q, B>,
): Route {
  const { parameters, query, enter, handler, ...row } = route;
  return {
    ...row,
    listener: 'public',
    path: parameters,
    query,
    handle: async (context, { authority, body, ...texts }) => {
      const path = parseParameters(parameters, joinedName(texts.path));
      const queryValues = parseParameters(query, texts.query);
      const call = adminCall(context, authority, body);
      await enter?.(call, path);
      return handler({ ...call, body: bodyOf(row.body, call) }, path, queryValues);
    },
  };
}

/** The body as the row reads it; the bytes of a row that takes none are none. */
function bodyOf<B>(row: BodyRow<B> | undefined, call: AdminCall<Buffer>): B;
function bodyOf(row: BodyRow<unknown> | undefined, { body, limits }: AdminCall<Buffer>): unknown {
  return row?.read(body, limits);
}

/** What a handler may use of the program, with what its request brings. */
export function adminCall(
  { admin, snapshot, limits }: ApiContext,
  authority: Authority,
  body: Buffer,
): AdminCall<Buffer> {
  return { ...admin(), authority, body, snapshot: snapshot(), limits: limits() };
}

export function jsonAnswer(status: number, value: unknown): Answer {
  return { status, body: () => JSON.stringify(value) };
}

export const NO_CONTENT: Answer = { status: 204 };

type Shown = Readonly<Record<string, ClaimValue>>;

/**
 * For the audit log: the claims that a write found and left, so that whoever widened the access to something can be
 * found (docs/behaviour/registry.md#administration). Nothing is said where they are the same; something new has no
 * claims before.
 */
export function claimsChange(before: ClaimSet | undefined, after: ClaimSet): Pick<Answer, 'facts'> {
  if (before === after) return {};
  const shown = (set: ClaimSet): Shown => shownClaims(set) ?? {};
  return {
    facts: {
      ...(before === undefined ? {} : { claims_before: shown(before) }),
      claims_after: shown(after),
    },
  };
}
