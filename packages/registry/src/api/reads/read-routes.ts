import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Authority } from '../../access/authority.ts';
import { enterGate } from '../../access/gate.ts';
import { entryKey } from '../../engine/entry-key.ts';
import type { Connection, Page } from '../../engine/kept-pages.ts';
import {
  listPage,
  pageKey,
  versionPage,
  versionsPage,
  type PageQuery,
  type Reader,
} from '../../engine/page.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import type { EntryKind } from '../../store/rows.ts';
import {
  bundleLimit,
  bundleName,
  bundleStatus,
  bundleVersions,
  cursor,
  limit,
  namespaceName,
  type Parameter,
  type Parameters,
  type Parsed,
  parseParameters,
  registryName,
  search,
  serverName,
  updatedSince as updatedSinceTime,
  versionFilter,
  versionName,
  versionsLimit,
} from '../route/parameter.ts';
import { type Answer, joinedName, registryPaths, type Route, type RouteBase } from '../route/route.ts';

interface RegistryRoute<Q extends Parameters> extends Omit<RouteBase, 'replies'> {
  /** What a success holds, the component of the OpenAPI document that it is, and what may be missing. */
  readonly replies: readonly [good: string, schema: string, missing: string];
  /** Below the prefixes of a registry; the documented form first. */
  readonly paths: readonly string[];
  readonly kind: EntryKind;
  readonly parameters: Readonly<Record<string, Parameter<string>>>;
  readonly query: Q;
  readonly handler: (
    reader: Reader,
    path: Readonly<Record<string, string>>,
    query: Parsed<Q>,
    caller: Connection,
  ) => Page | Promise<Page>;
}

/**
 * A consumer endpoint, checked in the order of docs/behaviour/registry.md#order-of-checks: parameters (400), registry
 * (404), its gate (403); then the handler reads what the caller may see. A `{serverName}` may also be written as two
 * path segments.
 */
function registryRoute<Q extends Parameters>(route: RegistryRoute<Q>): Route {
  const { paths, kind, parameters, query, handler, replies, ...base } = route;
  const [good, schema, missing] = replies;
  return {
    ...base,
    method: 'GET',
    listener: 'public',
    access: 'registry',
    paths: registryPaths(paths),
    path: { registry: registryName, ...parameters },
    query,
    replies: {
      200: { description: good, schema },
      304: { description: 'It is still what If-None-Match names' },
      400: 'A parameter is invalid',
      404: missing,
    },
    handle: (context, call) => {
      const texts = joinedName(call.path);
      const { registry } = parseParameters({ registry: registryName }, texts);
      const pathValues = parseParameters(parameters, texts);
      const queryValues = parseParameters(query, call.query, context.limits());
      const reader = readerOf(context.snapshot(), registry, call.authority);
      const page = handler({ kind, ...reader }, pathValues, queryValues, call.connection);
      return page instanceof Promise ? page.then(pageAnswer) : pageAnswer(page);
    },
  };
}

function readerOf(snapshot: Snapshot, registry: string, authority: Authority): Omit<Reader, 'kind'> {
  const view = snapshot.registries.get(registry);
  if (view === undefined) throw new SkepError('registry/unknown-registry');
  enterGate(authority, view.gate);
  return { view, visibility: snapshot.visibility(authority), pages: snapshot.pages };
}

/** The tag is of its bytes alone: one that changed when something hidden does would tell of it. */
function pageAnswer({ etag, pieces }: Page): Answer {
  return { status: 200, etag, body: () => pieces };
}

/** What tells kinds of entries apart for their readers. */
interface Words<Kind = EntryKind> {
  readonly kind: Kind;
  /** `Skill`, in operation ids. */
  readonly id: string;
  /** `skills`, the last path segment of the list. */
  readonly many: string;
  /** The component of the OpenAPI document that one is. */
  readonly item: string;
  /** Where the list is found, the documented form first. */
  readonly lists: readonly string[];
  /** What follows for one of them, and its parameters. */
  readonly one: string;
  readonly names: Readonly<Record<string, Parameter<string>>>;
  readonly versionsLimit: Parameter<number>;
}

const SERVERS: Words = {
  kind: 'server',
  id: 'Server',
  many: 'servers',
  item: 'ServerItem',
  lists: ['/servers'],
  one: '/{serverName}',
  names: { serverName },
  versionsLimit,
};
const SKILLS = bundles('skill', 'Skill');
const PLUGINS = bundles('plugin', 'Plugin');

type Bundle = 'skill' | 'plugin';

/** The second form is where clients of other servers look. */
function bundles(kind: Bundle, id: string): Words<Bundle> {
  return {
    kind,
    id,
    many: `${kind}s`,
    item: id,
    lists: [`/x/dev.skep/${kind}s`, `/x/dev.toolhive/${kind}s`],
    one: '/{namespace}/{name}',
    names: { namespace: namespaceName, name: bundleName },
    versionsLimit: bundleLimit,
  };
}

/** Lists the servers that the caller sees (docs/behaviour/registry.md#consumer-api). */
const listServers = registryRoute({
  ...listRow(SERVERS, 'one item per version'),
  query: { cursor, limit, search, updated_since: updatedSinceTime, version: versionFilter },
  handler: (reader, _, { cursor: after, updated_since: updatedSince, ...query }, caller) =>
    sharedPage(reader, { after, updatedSince, ...query }, caller),
});

function listBundles(words: Words): Route {
  return registryRoute({
    ...listRow(words, 'the latest version of each'),
    query: { cursor, limit: bundleLimit, search, status: bundleStatus, version: bundleVersions },
    handler: (reader, _, { cursor: after, version, ...query }, caller) =>
      sharedPage(reader, { after, version: version === 'all' ? undefined : version, ...query }, caller),
  });
}

function listRow({ kind, id, many, lists }: Words, items: string) {
  return {
    name: `list${id}s`,
    audit: `${kind}.list`,
    summary: `List the ${many} of a registry, ${items}`,
    paths: lists,
    kind,
    parameters: {},
    replies: [`A page of ${many}`, `${id}List`, 'There is no such registry'],
  } as const;
}

/** Made once for all who see the same. */
export function sharedPage(reader: Reader, query: PageQuery, caller: Connection): Page | Promise<Page> {
  return reader.pages.page(pageKey(reader, query), caller, (isWanted) => listPage(reader, query, isWanted));
}

/** An unknown entry has an empty list of versions (docs/behaviour/registry.md#consumer-api). */
function listVersions({ kind, id, lists, one, names, versionsLimit: most }: Words): Route {
  return registryRoute({
    name: `list${id}Versions`,
    audit: `${kind}.versions.list`,
    summary: `List all versions of a ${kind}`,
    paths: lists.map((list) => `${list}${one}/versions`),
    kind,
    parameters: names,
    query: { cursor, limit: most },
    replies: [
      `A page of versions; none when there is no such ${kind}`,
      `${id}List`,
      'There is no such registry',
    ],
    handler: (reader, path, { cursor: after, ...query }) =>
      versionsPage(reader, keyOf(path), { after, ...query }),
  });
}

function getVersion({ kind, id, item, lists, one, names }: Words): Route {
  return registryRoute({
    name: `get${id}Version`,
    audit: `${kind}.version.read`,
    summary: `Get one version of a ${kind}`,
    paths: lists.map((list) => `${list}${one}/versions/{version}`),
    kind,
    parameters: { ...names, version: versionName },
    query: {},
    replies: [`The ${kind}`, item, `There is no such registry, ${kind} or version`],
    handler: readVersion,
  });
}

function getLatest({ kind, id, item, lists, one, names }: Words<Bundle>): Route {
  return registryRoute({
    name: `getLatest${id}`,
    audit: `${kind}.read`,
    summary: `Get the latest version of a ${kind}`,
    paths: lists.map((list) => `${list}${one}`),
    kind,
    parameters: names,
    query: {},
    replies: [`The ${kind}`, item, `There is no such registry or ${kind}`],
    handler: readVersion,
  });
}

/** What the caller may not see does not exist. */
function readVersion(
  reader: Reader,
  { version = 'latest', ...path }: Readonly<Record<string, string>>,
): Page {
  const page = versionPage(reader, keyOf(path), version);
  if (page === undefined) throw new SkepError('registry/not-found');
  return page;
}

/** The namespace of a server is part of its name. */
function keyOf({ serverName: server = '', namespace = '', name = server }: Readonly<Record<string, string>>) {
  return entryKey({ namespace, name });
}

/** What callers read from the snapshot (docs/behaviour/registry.md#skills-and-plugins for two kinds). */
export const ENTRY_ROUTES: readonly Route[] = [
  listServers,
  listVersions(SERVERS),
  getVersion(SERVERS),
  ...[SKILLS, PLUGINS].flatMap((words) => [
    listBundles(words),
    getLatest(words),
    listVersions(words),
    getVersion(words),
  ]),
];
