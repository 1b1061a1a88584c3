import type { Role } from '@skep/auth/claims/roles.ts';
import { decideRead } from '../../access/admin-scope.ts';
import { storedClaims, type ClaimSet } from '../../access/claim-set.ts';
import { enforce } from '../../access/decision.ts';
import type { Committed, Revision } from '../../store/changes.ts';
import type { StoredRegistry, StoredSource } from '../../store/rows.ts';
import type { Access, Route } from '../route/route.ts';
import { type AdminCall, adminRoute, claimsChange, jsonAnswer, NO_CONTENT } from './admin-route.ts';
import type { BodyRow } from './bodies.ts';
import { pageCursor, pageLimit, pageOf, type Page, type PageQuery } from './listings.ts';
import { enforceDelete, notFound, resourceName, unknownResource } from './resource.ts';

type Resource = StoredSource | StoredRegistry;
type Settings = { readonly claims: ClaimSet };
type Note<R> = (existing: R | undefined) => void;

/** What tells sources and registries apart in the endpoints that both have. */
export interface ResourceKind<R extends Resource, S extends Settings> {
  readonly what: 'source' | 'registry';
  readonly many: 'sources' | 'registries';
  /** As it stands in names of operations and schemas. */
  readonly id: 'Source' | 'Registry';
  readonly ids: 'Sources' | 'Registries';
  /** Of those who change it and list its entries. */
  readonly role: Role;
  /** Whom it is shown to, where they satisfy its claims. */
  readonly readers: Access;
  readonly summaries: { readonly entries: string; readonly delete: string };
  readonly replies: {
    readonly get: string;
    readonly entries: string;
    readonly put: Route['replies'];
    readonly delete?: Route['replies'];
  };
  readonly body: BodyRow<S>;
  readonly list: (call: AdminCall) => Promise<readonly R[]>;
  readonly read: (call: AdminCall, name: string) => Promise<R | undefined>;
  /** How the caller sees rows, or the one of that name. */
  readonly show: (call: AdminCall, name?: string) => Promise<(row: R) => object>;
  readonly entries: (call: AdminCall, row: R, query: PageQuery) => Promise<Page<object>>;
  /** Decides and writes; tells `note` what the transaction has found. */
  readonly put: (
    call: AdminCall<S>,
    name: string,
    note: Note<R>,
  ) => Promise<{ readonly revision: Revision; readonly stored: R }>;
  readonly delete: (call: AdminCall, name: string, decide: Note<R>) => Promise<Committed<unknown>>;
  /** Hears of what was made, replaced or deleted. */
  readonly changed?: (call: AdminCall, name: string) => Promise<void>;
}

/** Endpoints that list, read, replace and delete (docs/behaviour/registry.md#administration). */
export function resourceRoutes<R extends Resource, S extends Settings>(kind: ResourceKind<R, S>): Route[] {
  return [...readRoutes(kind), ...writeRoutes(kind)];
}

const BAD_REQUEST = 'A parameter is invalid';
const page = { limit: pageLimit, cursor: pageCursor } as const;

function readRoutes<R extends Resource, S extends Settings>(kind: ResourceKind<R, S>): Route[] {
  const { what, many, id, ids, summaries, replies } = kind;
  const refusals = { 400: BAD_REQUEST, 404: `There is no such ${what} for this caller` };
  const list = adminRoute({
    method: 'GET',
    paths: [`/v1/${many}`],
    access: kind.readers,
    name: `list${ids}`,
    audit: `${what}.list`,
    summary: `List the ${many} that the caller may see`,
    parameters: {},
    query: page,
    replies: { 200: { description: `${ids} by name`, schema: `${id}List` }, 400: BAD_REQUEST },
    handler: async (call, _, query) => {
      const [rows, show] = await Promise.all([kind.list(call), kind.show(call)]);
      const readable = rows.filter(({ claims }) => decideRead(call.authority, storedClaims(claims)).allowed);
      const { items, ...next } = pageOf(readable, ({ name }) => [name], query);
      return jsonAnswer(200, { [many]: items.map(show), ...next });
    },
  });
  const get = adminRoute({
    method: 'GET',
    paths: [`/v1/${many}/{name}`],
    access: kind.readers,
    name: `get${id}`,
    audit: `${what}.read`,
    summary: `Read a ${what}`,
    parameters: { name: resourceName },
    query: {},
    replies: { 200: { description: replies.get, schema: `${id}Info` }, ...refusals },
    handler: async (call, { name }) => {
      const row = await visibleRow(kind, call, name);
      return jsonAnswer(200, (await kind.show(call, name))(row));
    },
  });
  const entries = adminRoute({
    method: 'GET',
    paths: [`/v1/${many}/{name}/entries`],
    access: { role: kind.role },
    name: `list${id}Entries`,
    audit: `${what}.entries.list`,
    summary: summaries.entries,
    parameters: { name: resourceName },
    query: page,
    replies: { 200: { description: replies.entries, schema: `${id}Entries` }, ...refusals },
    handler: async (call, { name }, query) => {
      const { items, ...next } = await kind.entries(call, await visibleRow(kind, call, name), query);
      return jsonAnswer(200, { entries: items, ...next });
    },
  });
  return [list, get, entries];
}

/** What the caller may see. One that is hidden and one that is not there fail with the same words. */
export async function visibleRow<R extends Resource>(
  { what, read }: Pick<ResourceKind<R, never>, 'what' | 'read'>,
  call: AdminCall,
  name: string,
): Promise<R> {
  const row = await read(call, name);
  if (row === undefined) throw unknownResource(what, name);
  enforce(decideRead(call.authority, storedClaims(row.claims)), notFound(what, name));
  return row;
}

function writeRoutes<R extends Resource, S extends Settings>(kind: ResourceKind<R, S>): Route[] {
  const { what, many, id, summaries, replies } = kind;
  const row = {
    paths: [`/v1/${many}/{name}`],
    access: { role: kind.role },
    parameters: { name: resourceName },
    query: {},
  } as const;
  const put = adminRoute({
    ...row,
    method: 'PUT',
    name: `put${id}`,
    audit: { created: `${what}.create`, otherwise: `${what}.update` },
    summary: `Create or replace a ${what}`,
    body: kind.body,
    replies: {
      200: { description: 'Replaced', schema: `${id}Info` },
      201: { description: 'Created', schema: `${id}Info` },
      ...replies.put,
    },
    handler: async (call, { name }) => {
      let before: ClaimSet | undefined;
      const { revision, stored } = await kind.put(call, name, (existing) => (before = existing?.claims));
      await call.applied(revision);
      await kind.changed?.(call, name);
      const shown = (await kind.show(call, name))(stored);
      const facts = claimsChange(before, call.body.claims);
      const location = `/v1/${many}/${encodeURIComponent(name)}`;
      return before === undefined
        ? { ...jsonAnswer(201, shown), ...facts, location }
        : { ...jsonAnswer(200, shown), ...facts };
    },
  });
  const remove = adminRoute({
    ...row,
    method: 'DELETE',
    name: `delete${id}`,
    audit: `${what}.delete`,
    summary: summaries.delete,
    replies: {
      204: { description: 'Deleted' },
      400: BAD_REQUEST,
      403: 'It is from the configuration file, or the caller lacks a claim',
      404: `There is no such ${what}`,
      ...replies.delete,
    },
    handler: async (call, { name }) => {
      const { revision } = await kind.delete(call, name, (existing) =>
        enforceDelete(what, name, call.authority, existing),
      );
      await call.applied(revision);
      await kind.changed?.(call, name);
      return NO_CONTENT;
    },
  });
  return [put, remove];
}
