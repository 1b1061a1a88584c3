import { checkIssuerUrl, type PlainHttp } from '@skep/auth/token/issuer-fetch.ts';
import { metadataUrl } from '@skep/auth/resource/metadata.ts';
import { checkHost } from '@skep/core/fetch/address-guard.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import type { ConfigPath, Problem } from '../shape/problem.ts';

// Reads what is readable and takes anything else as absent: the shape has reported that already.
const text = z.string().optional().catch(undefined);
const providerDraft = z
  .looseObject({
    issuerUrl: text,
    jwksUrl: text,
    introspectionUrl: text,
    clientId: text,
    clientSecretFile: text,
    caCertPath: text,
    authTokenFile: text,
    allowPrivateIP: z.boolean().optional().catch(undefined),
  })
  .catch({
    issuerUrl: undefined,
    jwksUrl: undefined,
    introspectionUrl: undefined,
    clientId: undefined,
    clientSecretFile: undefined,
    caCertPath: undefined,
    authTokenFile: undefined,
    allowPrivateIP: undefined,
  });
const authDraft = z.looseObject({
  mode: z.unknown().optional(),
  publicPaths: z.array(z.string().catch('')).catch([]),
  oauth: z
    .looseObject({ resourceUrl: text, providers: z.array(providerDraft).catch([]) })
    .optional()
    .catch({ resourceUrl: undefined, providers: [] }),
});
const draft = z.looseObject({
  auth: authDraft.optional().catch(undefined),
  registries: z.array(z.looseObject({ name: z.string().catch('') }).catch({ name: '' })).catch([]),
});

type Draft = z.infer<typeof draft>;
type ProviderDraft = z.infer<typeof providerDraft>;

/** Rules between members of `auth` (specification §1.3.4). `plainHttp` says which http addresses of issuers are accepted. */
export function authProblems(value: unknown, plainHttp: PlainHttp): Problem[] {
  const read = draft.safeParse(value);
  if (!read.success) return [];
  const { auth } = read.data;
  // Sign-in is the default, so that nobody opens a registry to the world by leaving a line out.
  const signsIn = (auth?.mode ?? 'oauth') === 'oauth';
  return [
    ...(signsIn && auth?.oauth === undefined ? [oauthMissing()] : []),
    ...resourceProblems(auth?.oauth?.resourceUrl),
    ...(auth?.oauth?.providers ?? []).flatMap((provider, index) =>
      providerProblems(provider, ['auth', 'oauth', 'providers', index], plainHttp),
    ),
    ...publicPathProblems(read.data, signsIn),
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

function providerProblems(provider: ProviderDraft, path: ConfigPath, plainHttp: PlainHttp): Problem[] {
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
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof SkepError) return [{ path, message: error.message }];
    throw error;
  }
}

/**
 * A path without sign-in has no caller, and where there is authorization a caller without claims must not read what others
 * need claims for. `/` and `/v1` would open the admin API to the world, in every mode with sign-in.
 */
function publicPathProblems({ auth, registries }: Draft, signsIn: boolean): Problem[] {
  const governed = auth !== undefined && 'authz' in auth;
  return (auth?.publicPaths ?? []).flatMap((publicPath, index) => {
    const message = publicPathFault(publicPath, { governed, signsIn, registries });
    return message === undefined ? [] : [{ path: ['auth', 'publicPaths', index], message }];
  });
}

function publicPathFault(
  publicPath: string,
  { governed, signsIn, registries }: { governed: boolean; signsIn: boolean; registries: Draft['registries'] },
): string | undefined {
  if (!/^\/(?:[\w.~!$&'()*+,;=:@-]+(?:\/|$))*$/.test(publicPath) || /\/\.{1,2}(?:\/|$)/.test(publicPath)) {
    return `must be a plain path such as "/docs", not "${publicPath}"`;
  }
  if (!signsIn) return undefined;
  const [, first = ''] = publicPath.split('/');
  if (first === '' || first.startsWith('v1')) {
    return `"${publicPath}" would open the admin API to everyone`;
  }
  const isRegistry = first === 'registry' || registries.some(({ name }) => name === first);
  return governed && isRegistry
    ? `"${publicPath}" would open a registry to everyone, past its claims`
    : undefined;
}
