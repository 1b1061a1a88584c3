import { SkepError } from '@skep/core/errors/skep-error.ts';
import { entryKey } from '../../engine/kinds.ts';
import { entryOf, versionPage, versionsPage } from '../../engine/page.ts';
import type { PageQuery, Reader } from '../../engine/page-walk.ts';
import { bundleName, namespaceName, versionName } from '../route/path-parameters.ts';
import { bundleLimit, bundleStatus, bundleVersions, cursor, search } from '../route/query-parameters.ts';
import { registryRoute } from './registry-route.ts';
import type { Answer, Replies, Route } from '../route/route.ts';
import { listAnswer, pageAnswer } from './list-answer.ts';

/** Below `x/<vendor>/`; the second form is where clients of other servers look. */
const VENDORS = ['dev.skep', 'dev.toolhive'] as const;

interface Words {
  readonly kind: 'skill' | 'plugin';
  /** `Skill`, in operation ids. */
  readonly id: string;
  /** `skills`, the path segment and member of the list. */
  readonly many: string;
}

/** Skills and plugins have the same four endpoints (docs/behaviour/registry.md#skills-and-plugins). */
export const BUNDLE_ROUTES: readonly Route[] = [
  ...bundleRoutes({ kind: 'skill', id: 'Skill', many: 'skills' }),
  ...bundleRoutes({ kind: 'plugin', id: 'Plugin', many: 'plugins' }),
];

function bundleRoutes(words: Words): Route[] {
  return [listBundles(words), getLatest(words), listVersions(words), getVersion(words)];
}

function listBundles({ kind, id, many }: Words): Route {
  return registryRoute({
    name: `list${id}s`,
    audit: `${kind}.list`,
    summary: `List the ${many} of a registry, the latest version of each`,
    paths: pathsOf(many, ''),
    kind,
    parameters: {},
    query: { cursor, limit: bundleLimit, search, status: bundleStatus, version: bundleVersions },
    replies: repliesOf(`A page of ${many}`, `${id}List`, 'There is no such registry'),
    handler: (reader, _, { limit, version, ...query }, caller) => {
      const page: PageQuery = {
        limit,
        ...(version === 'all' ? {} : { version }),
        ...(query.cursor === undefined ? {} : { after: query.cursor }),
        ...(query.search === undefined ? {} : { search: query.search }),
        ...(query.status === undefined ? {} : { status: query.status }),
      };
      return listAnswer(reader, page, caller);
    },
  });
}

function getLatest({ kind, id, many }: Words): Route {
  return registryRoute({
    name: `getLatest${id}`,
    audit: `${kind}.read`,
    summary: `Get the latest version of a ${kind}`,
    paths: pathsOf(many, '/{namespace}/{name}'),
    kind,
    parameters: { namespace: namespaceName, name: bundleName },
    query: {},
    replies: repliesOf(`The ${kind}`, id, `There is no such registry or ${kind}`),
    handler: (reader, identity) => oneVersion(reader, identity, 'latest'),
  });
}

function listVersions({ kind, id, many }: Words): Route {
  return registryRoute({
    name: `list${id}Versions`,
    audit: `${kind}.versions.list`,
    summary: `List all versions of a ${kind}`,
    paths: pathsOf(many, '/{namespace}/{name}/versions'),
    kind,
    parameters: { namespace: namespaceName, name: bundleName },
    query: { cursor, limit: bundleLimit },
    replies: repliesOf(
      `A page of versions; none when there is no such ${kind}`,
      `${id}List`,
      'There is no such registry',
    ),
    handler: (reader, identity, { limit, cursor: after }) => {
      const range = { limit, ...(after === undefined ? {} : { after }) };
      return pageAnswer(versionsPage(kind, entryOf(reader, entryKey(identity)), range));
    },
  });
}

function getVersion({ kind, id, many }: Words): Route {
  return registryRoute({
    name: `get${id}Version`,
    audit: `${kind}.version.read`,
    summary: `Get one version of a ${kind}`,
    paths: pathsOf(many, '/{namespace}/{name}/versions/{version}'),
    kind,
    parameters: { namespace: namespaceName, name: bundleName, version: versionName },
    query: {},
    replies: repliesOf(`The ${kind}`, id, `There is no such registry, ${kind} or version`),
    handler: (reader, { version, ...identity }) => oneVersion(reader, identity, version),
  });
}

function oneVersion(
  reader: Reader,
  identity: { readonly namespace: string; readonly name: string },
  version: string,
): Answer {
  const entry = entryOf(reader, entryKey(identity));
  const page = entry === undefined ? undefined : versionPage(entry, version);
  if (page === undefined) throw new SkepError('registry/not-found');
  return pageAnswer(page);
}

function pathsOf(many: string, rest: string): [string, ...string[]] {
  const [own, alias] = VENDORS;
  return [`/x/${own}/${many}${rest}`, `/x/${alias}/${many}${rest}`];
}

function repliesOf(good: string, schema: string, missing: string): Replies {
  return {
    200: { description: good, schema },
    304: { description: 'It is still what If-None-Match names' },
    400: 'A parameter is invalid',
    404: missing,
  };
}
