import type { z } from 'zod';
import type { Role } from '@skep/auth/claims/roles.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Authority } from '../../access/authority.ts';
import type { AuditRule } from '../../config/audit-events.ts';
import type { BuildInfo } from '../../config/build-info.ts';
import type { Connection } from '../../engine/kept-pages.ts';
import type { Limits } from '../../shape/limits.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import type { Revision } from '../../store/changes.ts';
import type { EntryIdentity } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Ingest } from '../../sync/ingest.ts';
import type { SyncScheduler } from '../../sync/scheduler.ts';
import type { Parameters, RawParameters } from './parameter.ts';
import type { SignIn } from '../sign-in/sign-in.ts';

/** What handlers may use; nothing else reaches them. */
export interface ApiContext {
  /** The state to answer this request from. */
  readonly snapshot: () => Snapshot;
  /** How callers are told apart, as configured now. */
  readonly signIn: () => SignIn;
  /** Names of identity providers that do not answer. */
  readonly providersAway: () => readonly string[];
  /** What works on the store; fails with `registry/not-ready` until it is open. */
  readonly admin: () => AdminParts;
  readonly build: BuildInfo;
  /** What callers are held to now. */
  readonly limits: () => Limits;
  /** Resolves when the service can answer, else fails with `registry/not-ready`. */
  readonly ready: () => Promise<void>;
  /** JSON text of the OpenAPI document. */
  readonly openApi: () => string;
  /** All metrics in the Prometheus text format; fails with `registry/no-such-route` where none are kept. */
  readonly metrics: () => Promise<string>;
}

/** A request, as far as handlers see one. Parameter texts are percent-decoded exactly once. */
export interface Call {
  readonly authority: Authority;
  readonly path: RawParameters;
  readonly query: RawParameters;
  /** As received, its type and size checked; empty where the row takes no body. */
  readonly body: Buffer;
  readonly connection: Connection;
}

export interface Answer {
  readonly status: number;
  /** Strong entity tag in quotes (RFC 9110 §8.8.3): equal tags promise equal bytes. */
  readonly etag?: string;
  /** Path of what was created. */
  readonly location?: string;
  /** Facts for the audit log only, such as the claims before a change. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** Media type of a body that is not JSON. */
  readonly type?: string;
  /** JSON: a text, or bytes in pieces that are sent one after the other. Made only when it will be sent. Absent: 204. */
  readonly body?: () => string | readonly Buffer[];
}

/**
 * Whom an endpoint answers: anyone; whoever has a valid token; whoever passes the gate of the registry in the path; or
 * the holders of a role, which is checked before the body is read. Where no sign-in or no authorization is configured,
 * everyone passes.
 */
export type Access = 'public' | 'signed-in' | 'registry' | { readonly role: Role };

/** One documented status of an endpoint: what it means. `schema` names a component of the OpenAPI document. */
export interface Reply {
  readonly description: string;
  readonly schema?: string;
}

/** What an endpoint answers, by status; a text alone describes an error. */
export type Replies = Readonly<Record<number, Reply | string>>;

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A JSON body that an endpoint takes. `schema` names a component of the OpenAPI document, which `shape` describes. */
export interface RequestBody {
  readonly description: string;
  readonly schema: string;
  /** Absent for a component that answers have too. */
  readonly shape?: z.ZodType;
  /** The limit that decides about `maxBytes`. */
  readonly limit: 'maxBodySize' | 'maxInlineDataSize';
  readonly maxBytes: number;
}

/** One row of the table that the router, validation and the OpenAPI document are derived from. */
export interface Route {
  readonly method: Method;
  readonly listener: 'public' | 'internal';
  /** `{name}` stands for a parameter. The documented forms first. */
  readonly paths: readonly [string, ...string[]];
  readonly access: Access;
  /** Operation id, also for logs. */
  readonly name: string;
  /** What the audit log calls it; absent for endpoints that tell nothing about the catalogue or its callers. */
  readonly audit?: AuditRule;
  readonly summary: string;
  readonly path: Parameters;
  readonly query: Parameters;
  readonly body?: RequestBody;
  /** What the handler answers. What every endpoint of its access may answer besides says `commonReplies`. */
  readonly replies: Replies;
  readonly handle: (context: ApiContext, call: Call) => Answer | Promise<Answer>;
}

/** What an endpoint says about itself, whatever builds its row. */
export type RouteBase = Pick<Route, 'name' | 'audit' | 'summary' | 'replies'>;

interface PlainRoute extends RouteBase {
  readonly listener: Route['listener'];
  readonly path: string;
  readonly access?: Access;
  readonly handler: Route['handle'];
}

/** A GET endpoint without parameters, for anyone unless `access` says otherwise. */
export function plainRoute({ path, handler, access = 'public', ...route }: PlainRoute): Route {
  return { ...route, method: 'GET', access, paths: [path], path: {}, query: {}, handle: handler };
}

/** The table with the bytes that each body may have. */
export function withBodyLimits(routes: readonly Route[], limits: Limits): Route[] {
  return routes.map((route) => {
    const { body } = route;
    return body === undefined ? route : { ...route, body: { ...body, maxBytes: limits[body.limit] } };
  });
}

/** What the endpoints that write may use, and those that read what only the store has. */
export interface AdminParts {
  readonly store: Store;
  /** Resolves when every read of this process sees the commit of that revision. */
  readonly applied: (revision: Revision) => Promise<void>;
  /** Whether this process serves such an entry, of whichever source. */
  readonly serves: (identity: EntryIdentity) => boolean;
  readonly sync: Pick<SyncScheduler, 'sourceChanged' | 'syncNow'>;
  /** Reads inline data before it is taken; large data in a thread of its own. */
  readonly ingest: Ingest;
  readonly log: Log;
}

/** Both prefixes of every form, and for a server name the form in which proxies have decoded its slash. */
export function registryPaths(paths: readonly string[]): [string, ...string[]] {
  return serverPaths(paths, ['/registry/{registry}/v0.1', '/{registry}/v0.1']);
}

/** Likewise below other prefixes. */
export function serverPaths(paths: readonly string[], prefixes: readonly string[]): [string, ...string[]] {
  const decoded = paths
    .filter((path) => path.includes('{serverName}'))
    .map((path) => path.replace('{serverName}', '{namespace}/{serverName}'));
  const [first = '', ...others] = [...paths, ...decoded].flatMap((path) =>
    prefixes.map((prefix) => prefix + path),
  );
  return [first, ...others];
}

/** The name of a server whether its slash arrived encoded or as two segments. */
export function joinedName(path: RawParameters): RawParameters {
  const { namespace, serverName, ...texts } = path;
  if (serverName === undefined) return path;
  const joined = namespace === undefined ? serverName : `${String(namespace)}/${String(serverName)}`;
  return { ...texts, serverName: joined };
}
