import { entryKey } from '../../engine/entry-key.ts';
import { versionsPage } from '../../engine/page.ts';
import {
  bundleName,
  namespaceName,
  versionName,
  bundleLimit,
  bundleStatus,
  bundleVersions,
  cursor,
  search,
} from '../route/parameter.ts';
import { registryRoute } from './registry-route.ts';
import type { Route } from '../route/route.ts';
import { listAnswer, pageAnswer, versionAnswer } from './list-answer.ts';

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
    replies: [`A page of ${many}`, `${id}List`, 'There is no such registry'],
    handler: (reader, _, { limit, version, cursor: after, ...query }, caller) => {
      const page = { limit, version: version === 'all' ? undefined : version, after, ...query };
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
    replies: [`The ${kind}`, id, `There is no such registry or ${kind}`],
    handler: (reader, identity) => versionAnswer(reader, entryKey(identity), 'latest'),
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
    replies: [
      `A page of versions; none when there is no such ${kind}`,
      `${id}List`,
      'There is no such registry',
    ],
    handler: (reader, identity, { limit, cursor: after }) =>
      pageAnswer(versionsPage(reader, entryKey(identity), { limit, after })),
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
    replies: [`The ${kind}`, id, `There is no such registry, ${kind} or version`],
    handler: (reader, { version, ...identity }) => versionAnswer(reader, entryKey(identity), version),
  });
}

function pathsOf(many: string, rest: string): [string, ...string[]] {
  const [own, alias] = VENDORS;
  return [`/x/${own}/${many}${rest}`, `/x/${alias}/${many}${rest}`];
}
