import { isAbsolute } from 'node:path';
import { metadataUrl } from '@skep/auth/resource/metadata.ts';
import { checkIssuerUrl, type PlainHttp } from '@skep/auth/token/issuer-fetch.ts';
import { checkHost } from '@skep/core/fetch/address-guard.ts';
import { claimsProblems } from '../shape/claims.ts';
import { draftOf } from '../shape/draft.ts';
import { claimLimitsOf } from '../shape/limits.ts';
import { faultOf, type ConfigPath, type Problem } from '../shape/problem.ts';
import { managedProblems, sourceProblems } from '../sources/source-body.ts';
import { configShape, type ConfigDraft } from './shape.ts';

/**
 * Rules between members, checked as far as the members can be read. `plainHttp` says which http addresses of issuers are
 * accepted.
 */
export function checkRelations(value: unknown, plainHttp: PlainHttp = 'loopback'): Problem[] {
  const config = draftOf(configShape, value);
  if (config === undefined) return [];
  const sources = (config.sources ?? []).map((source) => source ?? {});
  const registries = (config.registries ?? []).map((registry) => registry ?? {});
  const names = new Set(sources.map(({ name }) => name));
  return [
    ...sources.flatMap((source, index) => [...sourceProblems(source, ['sources', index], 'file')]),
    ...managedProblems(sources),
    ...repeatedNames(sources, 'sources', 'source'),
    ...repeatedNames(registries, 'registries', 'registry'),
    ...registries.flatMap(({ sources: linked = [] }, index) => [
      ...linkProblems(linked, names, ['registries', index, 'sources']),
    ]),
    ...claimProblems(config),
    ...authProblems(config, plainHttp),
  ];
}

function* repeatedNames(
  items: readonly { readonly name?: string | undefined }[],
  member: string,
  what: string,
): Generator<Problem> {
  for (const [index, { name = '' }] of items.entries()) {
    if (name === '' || items.findIndex((item) => item.name === name) === index) continue;
    yield { path: [member, index, 'name'], message: `duplicate ${what} name "${name}"` };
  }
}

function* linkProblems(
  linked: readonly (string | undefined)[],
  known: ReadonlySet<string | undefined>,
  list: ConfigPath,
): Generator<Problem> {
  for (const [position, source = ''] of linked.entries()) {
    const path = [...list, position];
    if (source === '') continue;
    if (!known.has(source)) yield { path, message: `references unknown source "${source}"` };
    else if (linked.indexOf(source) < position) yield { path, message: `names the source "${source}" twice` };
  }
}

/** Everything wrong with the claims of sources, registries and roles, by the limits that stand beside them. */
export function claimProblems({ sources = [], registries = [], auth, limits }: ConfigDraft): Problem[] {
  const most = claimLimitsOf(limits?.claims);
  const check = (claims: unknown, path: ConfigPath): Problem[] => claimsProblems(claims, path, most);
  return [
    ...sources.flatMap((source, index) => check(source?.claims, ['sources', index, 'claims'])),
    ...registries.flatMap((registry, index) => check(registry?.claims, ['registries', index, 'claims'])),
    ...Object.entries(auth?.authz?.roles ?? {}).flatMap(([role, rules]) =>
      // A role that nobody knows stands here as it was written.
      (Array.isArray(rules) ? rules : []).flatMap((rule, index) =>
        check(rule, ['auth', 'authz', 'roles', role, index]),
      ),
    ),
  ];
}

type ProviderDraft = NonNullable<NonNullable<NonNullable<ConfigDraft['auth']>['oauth']>['providers']>[number];

/** Rules between members of `auth`. `plainHttp` says which http addresses of issuers are accepted. */
function* authProblems({ auth, registries = [] }: ConfigDraft, plainHttp: PlainHttp): Generator<Problem> {
  // Sign-in is the default, so that nobody opens a registry to the world by leaving a line out.
  const signsIn = (auth?.mode ?? 'oauth') === 'oauth';
  if (signsIn && !('oauth' in (auth ?? {}))) {
    const message =
      'auth.oauth is required when auth.mode is oauth (the default); set auth.mode to anonymous to let everyone read everything';
    yield { path: ['auth', 'oauth'], message };
  }
  const { resourceUrl, providers = [] } = auth?.oauth ?? {};
  if (resourceUrl !== undefined) {
    yield* fault(['auth', 'oauth', 'resourceUrl'], () => metadataUrl(resourceUrl));
  }
  for (const [index, provider] of providers.entries()) {
    yield* providerProblems(provider, ['auth', 'oauth', 'providers', index], plainHttp);
  }
  const rules: PathRules = {
    signsIn,
    governed: auth !== undefined && 'authz' in auth,
    registries: registries.map((registry) => registry?.name),
  };
  for (const [index, publicPath = ''] of (auth?.publicPaths ?? []).entries()) {
    const message = publicPathFault(publicPath, rules);
    if (message !== undefined) yield { path: ['auth', 'publicPaths', index], message };
  }
}

function* providerProblems(
  provider: ProviderDraft = {},
  path: ConfigPath,
  plainHttp: PlainHttp,
): Generator<Problem> {
  for (const member of ['issuerUrl', 'jwksUrl', 'introspectionUrl'] as const) {
    const url = provider[member]?.trim() ?? '';
    if (url === '') continue;
    const place = [...path, member];
    const unusable = fault(place, () => checkIssuerUrl(url, plainHttp));
    yield* unusable;
    if (unusable.length === 0 && provider.allowPrivateIP !== true) yield* privateProblems(url, place);
  }
  for (const member of ['clientSecretFile', 'caCertPath', 'authTokenFile'] as const) {
    const file = provider[member] ?? '';
    if (file === '' || isAbsolute(file)) continue;
    yield { path: [...path, member], message: `must be an absolute path, not "${file}"` };
  }
  if (provider.clientSecretFile !== undefined && provider.clientId === undefined) {
    yield { path: [...path, 'clientSecretFile'], message: 'needs clientId beside it' };
  }
}

/** Nobody could ever sign in: the address is refused whenever it is asked, which the first caller would otherwise find. */
function* privateProblems(url: string, path: ConfigPath): Generator<Problem> {
  const { hostname } = new URL(url);
  const isLocal = /^(?:.+\.)?localhost\.?$/i.test(hostname);
  if (!isLocal && faultOf(() => checkHost(new URL(url))) === undefined) return;
  const message = `"${hostname}" is a private address; set allowPrivateIP: true beside it if the provider is there`;
  yield { path, message };
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
