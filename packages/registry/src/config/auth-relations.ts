import { checkIssuerUrl, type PlainHttp } from '@skep/auth/token/issuer-fetch.ts';
import { metadataUrl } from '@skep/auth/resource/metadata.ts';
import { checkHost } from '@skep/core/fetch/address-guard.ts';
import { isAbsolute } from 'node:path';
import { faultOf } from '../shape/fault.ts';
import type { ConfigPath, Problem } from '../shape/problem.ts';
import type { ConfigDraft } from './shape.ts';

type ProviderDraft = NonNullable<NonNullable<NonNullable<ConfigDraft['auth']>['oauth']>['providers']>[number];

/** Rules between members of `auth`. `plainHttp` says which http addresses of issuers are accepted. */
export function authProblems({ auth, registries = [] }: ConfigDraft, plainHttp: PlainHttp): Problem[] {
  // Sign-in is the default, so that nobody opens a registry to the world by leaving a line out.
  const signsIn = (auth?.mode ?? 'oauth') === 'oauth';
  const rules: PathRules = {
    signsIn,
    governed: auth !== undefined && 'authz' in auth,
    registries: registries.map((registry) => registry?.name),
  };
  return [
    ...(signsIn && !('oauth' in (auth ?? {})) ? [oauthMissing()] : []),
    ...resourceProblems(auth?.oauth?.resourceUrl),
    ...(auth?.oauth?.providers ?? []).flatMap((provider, index) =>
      providerProblems(provider, ['auth', 'oauth', 'providers', index], plainHttp),
    ),
    ...(auth?.publicPaths ?? []).flatMap((publicPath = '', index) => {
      const message = publicPathFault(publicPath, rules);
      return message === undefined ? [] : [{ path: ['auth', 'publicPaths', index], message }];
    }),
  ];
}

function oauthMissing(): Problem {
  return {
    path: ['auth', 'oauth'],
    message:
      'auth.oauth is required when auth.mode is oauth (the default); set auth.mode to anonymous to let everyone read everything',
  };
}

function resourceProblems(resourceUrl: string | undefined): Problem[] {
  if (resourceUrl === undefined) return [];
  return fault(['auth', 'oauth', 'resourceUrl'], () => metadataUrl(resourceUrl));
}

function providerProblems(provider: ProviderDraft = {}, path: ConfigPath, plainHttp: PlainHttp): Problem[] {
  const urls = (['issuerUrl', 'jwksUrl', 'introspectionUrl'] as const).flatMap((member) => {
    const url = provider[member]?.trim() ?? '';
    if (url === '') return [];
    const place = [...path, member];
    const unusable = fault(place, () => checkIssuerUrl(url, plainHttp));
    return unusable.length > 0 || provider.allowPrivateIP === true ? unusable : privateProblems(url, place);
  });
  const files = (['clientSecretFile', 'caCertPath', 'authTokenFile'] as const).flatMap((member) => {
    const file = provider[member] ?? '';
    return file === '' || isAbsolute(file)
      ? []
      : [{ path: [...path, member], message: `must be an absolute path, not "${file}"` }];
  });
  const secretless = provider.clientSecretFile !== undefined && provider.clientId === undefined;
  return [
    ...urls,
    ...files,
    ...(secretless ? [{ path: [...path, 'clientSecretFile'], message: 'needs clientId beside it' }] : []),
  ];
}

/** Nobody could ever sign in: the address is refused whenever it is asked, which the first caller would otherwise find. */
function privateProblems(url: string, path: ConfigPath): Problem[] {
  const { hostname } = new URL(url);
  const isLocal = /^(?:.+\.)?localhost\.?$/i.test(hostname);
  const refused = isLocal || fault(path, () => checkHost(new URL(url))).length > 0;
  const message = `"${hostname}" is a private address; set allowPrivateIP: true beside it if the provider is there`;
  return refused ? [{ path, message }] : [];
}

function fault(path: ConfigPath, check: () => unknown): Problem[] {
  const message = faultOf(check);
  return message === undefined ? [] : [{ path, message }];
}

interface PathRules {
  readonly governed: boolean;
  readonly signsIn: boolean;
  readonly registries: readonly (string | undefined)[];
}

/**
 * A path without sign-in has no caller, and where there is authorization a caller without claims must not read what others
 * need claims for. `/` and `/v1` would open the admin API to the world, in every mode with sign-in.
 */
function publicPathFault(
  publicPath: string,
  { governed, signsIn, registries }: PathRules,
): string | undefined {
  if (!/^\/(?:[\w.~!$&'()*+,;=:@-]+(?:\/|$))*$/.test(publicPath) || /\/\.{1,2}(?:\/|$)/.test(publicPath)) {
    return `must be a plain path such as "/docs", not "${publicPath}"`;
  }
  if (!signsIn) return undefined;
  const [, first = ''] = publicPath.split('/');
  if (first === '' || first.startsWith('v1')) {
    return `"${publicPath}" would open the admin API to everyone`;
  }
  const isRegistry = first === 'registry' || registries.includes(first);
  return governed && isRegistry
    ? `"${publicPath}" would open a registry to everyone, past its claims`
    : undefined;
}
