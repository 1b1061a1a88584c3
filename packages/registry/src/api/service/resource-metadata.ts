import { resourceMetadata } from '@skep/auth/resource/metadata.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { registryName, parseParameters } from '../route/parameter.ts';
import type { Answer, ApiContext, Call, Route } from '../route/route.ts';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

const row = {
  method: 'GET',
  listener: 'public',
  access: 'public',
  query: {},
  replies: {
    200: { description: 'Protected resource metadata', schema: 'ResourceMetadata' },
    404: 'There is no sign-in',
  },
  handle: answer,
} as const;

/**
 * Where clients learn how to sign in (RFC 9728): for the whole server, and for one registry in the
 * path-suffixed form of RFC 9728 §3.1. Registries are not looked up, so nobody learns here which ones exist. Without sign-in
 * or without `auth.oauth.resourceUrl` there is no document.
 */
export const resourceMetadataRoutes: readonly Route[] = [
  {
    ...row,
    name: 'getResourceMetadata',
    summary: 'How to sign in',
    // A resource URL with a path of its own has its document below that path.
    paths: [WELL_KNOWN, `${WELL_KNOWN}/*`],
    path: {},
  },
  {
    ...row,
    name: 'getRegistryMetadata',
    summary: 'How to sign in, for clients that know the URL of one registry',
    paths: [`${WELL_KNOWN}/registry/{registry}`],
    path: { registry: registryName },
    replies: {
      ...row.replies,
      400: 'The name is empty or holds white space',
    },
  },
];

function answer({ signIn }: ApiContext, { path }: Call): Answer {
  const current = signIn();
  const base = current.kind === 'bearer' ? current.resource.url : undefined;
  if (current.kind === 'open' || base === undefined) throw new SkepError('registry/no-such-route');
  const resource = named(new URL(base), path);
  if (resource === undefined) throw new SkepError('registry/no-such-route');
  const document = resourceMetadata({ resource, issuers: current.issuers, scopes: current.resource.scopes });
  return { status: 200, body: () => JSON.stringify(document) };
}

/** The resource whose document is asked for, or undefined when it is none of ours. */
function named(base: URL, path: Call['path']): string | undefined {
  const root = base.href.replace(/\/$/, '');
  if (path['registry'] !== undefined) {
    const { registry } = parseParameters({ registry: registryName }, path);
    return `${root}/registry/${encodeURIComponent(registry)}`;
  }
  const suffix = path['*'];
  const own = base.pathname.replace(/^\/|\/$/g, '');
  if (suffix === undefined || suffix === own) return base.pathname === '/' ? root : base.href;
  const registry = /^registry\/([^/]+)$/.exec(String(suffix).slice(own.length + 1));
  const isBelow = own !== '' && String(suffix).startsWith(`${own}/`);
  return isBelow && registry?.[1] !== undefined
    ? `${root}/registry/${encodeURIComponent(registry[1])}`
    : undefined;
}
