import { resourceMetadata } from '@skep/auth/resource/metadata.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { registryName, parseParameters } from '../route/parameter.ts';
import type { Answer, ApiContext, Call, Route } from '../route/route.ts';
import type { BearerSignIn, SignIn } from '../sign-in/sign-in.ts';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const LOGIN = '/.well-known/skep-registry';

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

/**
 * What `skep login` has to know besides: the client and the scopes of each provider, and where the registries are listed
 * for those who are signed in (decision 0357). Its paths and conditions are those of the metadata.
 */
export const loginRoutes: readonly Route[] = resourceMetadataRoutes.map((route) => {
  const [first, ...others] = route.paths.map((path) => path.replace(WELL_KNOWN, LOGIN));
  return {
    ...route,
    name: route.name.replace('Metadata', 'Login'),
    summary: route.summary.replace('How to sign in', 'What `skep login` reads'),
    paths: [first ?? LOGIN, ...others],
    replies: { ...route.replies, 200: { description: 'How `skep login` signs in', schema: 'LoginDocument' } },
    handle: answerLogin,
  };
});

function answer({ signIn }: ApiContext, { path }: Call): Answer {
  const { resource, issuers, scopes } = askedFor(signIn(), path);
  const document = resourceMetadata({ resource, issuers, scopes });
  return { status: 200, body: () => JSON.stringify(document) };
}

function answerLogin({ signIn }: ApiContext, { path }: Call): Answer {
  const { base, logins } = askedFor(signIn(), path);
  const document = {
    resource: base,
    registries: `${base.replace(/\/$/, '')}/v1/registries`,
    sign_in: logins.map(({ issuer, clientId, scopes, audience }) => ({
      issuer,
      client_id: clientId,
      scopes,
      audience,
    })),
  };
  return { status: 200, body: () => JSON.stringify(document) };
}

interface Asked extends Pick<BearerSignIn, 'issuers' | 'logins'> {
  /** Of the server. */
  readonly base: string;
  readonly resource: string;
  readonly scopes: readonly string[] | undefined;
}

/** Fails with `registry/no-such-route`. */
function askedFor(current: SignIn, path: Call['path']): Asked {
  const url = current.kind === 'bearer' ? current.resource.url : undefined;
  if (current.kind === 'open' || url === undefined) throw new SkepError('registry/no-such-route');
  const resource = named(new URL(url), path);
  const base = named(new URL(url), {});
  if (resource === undefined || base === undefined) throw new SkepError('registry/no-such-route');
  const { issuers, logins } = current;
  return { base, resource, issuers, logins, scopes: current.resource.scopes };
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
