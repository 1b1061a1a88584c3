import { type ManualClock, manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { fakeIssuer, type SigningKey, signed } from '@skep/auth/token/tokens.fixture.ts';
import { AUDIENCE, ISSUER } from '@skep/auth/token/tokens.fixture.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import type { SignInMode } from '../access/authority.ts';
import { buildInfo } from '../config/build-info.ts';
import type { AuthConfig, OauthAuth } from '../config/auth.ts';
import type { Snapshot } from '../engine/snapshot.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { createListener, type ListenerOptions } from './http/listener.ts';
import { openApiDocument } from './openapi/openapi.ts';
import type { AdminParts } from './route/admin-parts.ts';
import { DEFAULT_PAGES, type PageLimits } from './route/page-limits.ts';
import type { Route } from './route/route.ts';
import { ROUTES } from './routes.ts';
import { openSignIn, type SignIn } from './sign-in/sign-in.ts';

// The HTTP interface over a snapshot, with an identity provider in memory, for the tests of this folder.

export interface ApiUnderTest {
  readonly open: FastifyInstance;
  readonly internal: FastifyInstance;
  readonly issuer: ReturnType<typeof fakeIssuer>;
  readonly clock: ManualClock;
  /** `operation status` of everything that was answered through `get`, on both listeners. */
  readonly seen: Set<string>;
  /** Replaces what is served. */
  serve(snapshot: Snapshot): void;
  setReady(ready: boolean): void;
  get(url: string, headers?: Readonly<Record<string, string>>): Promise<LightMyRequestResponse>;
  ask(request: InjectOptions, listener?: 'internal'): Promise<LightMyRequestResponse>;
  close(): Promise<void>;
}

export interface ApiOptions {
  readonly snapshot: Snapshot;
  readonly auth?: AuthConfig;
  readonly keys?: SigningKey[];
  /** In place of what `auth` describes. */
  readonly signIn?: () => SignIn;
  readonly routes?: readonly Route[];
  readonly admin?: AdminParts;
  readonly listener?: Partial<ListenerOptions>;
  readonly pages?: PageLimits;
  readonly providersAway?: readonly string[];
  /** Answers /metrics; where absent none are kept. */
  readonly metrics?: () => Promise<string>;
}

export const ANONYMOUS_AUTH: AuthConfig = { mode: 'anonymous', unusedRoles: {}, allowedHosts: [] };

/** A configuration with the issuer of the token fixtures. */
export function oauthWith(access: SignInMode, changes: Partial<OauthAuth> = {}): OauthAuth {
  return {
    mode: 'oauth',
    access,
    publicPaths: [],
    resource: { url: 'https://registry.test', realm: 'mcp-registry', scopes: undefined },
    providers: [
      {
        name: 'test',
        issuerUrl: ISSUER,
        allowPrivateIP: false,
        plainHttp: 'never',
        rules: { audience: AUDIENCE, leewayS: 5, subject: 'optional' },
        issuerMatch: 'exact',
        forcedRefreshEveryMs: 60_000,
      },
    ],
    ...changes,
  };
}

export async function apiUnderTest(options: ApiOptions): Promise<ApiUnderTest> {
  const { auth = ANONYMOUS_AUTH, keys = [], routes = ROUTES } = options;
  const issuer = fakeIssuer(keys);
  const clock = manualClock();
  const signIn = await openSignIn(auth, { clock, random: () => 0, log: silentLog, fetch: issuer });
  let { snapshot } = options;
  let ready = true;
  const build = buildInfo({ version: 'v24.0.0', platform: 'linux', arch: 'x64' });
  const document = JSON.stringify(
    openApiDocument({ routes, version: build.version, pages: options.pages ?? DEFAULT_PAGES }),
  );
  const context = {
    snapshot: () => snapshot,
    signIn: options.signIn ?? (() => signIn),
    providersAway: () => options.providersAway ?? [],
    admin: () => options.admin ?? noStore(),
    build,
    pages: options.pages ?? DEFAULT_PAGES,
    metrics: options.metrics ?? (() => Promise.reject(new SkepError('registry/no-such-route'))),
    ready: async () => {
      if (!ready) throw new SkepError('registry/not-ready');
    },
    openApi: () => document,
  };
  const listener = (name: 'public' | 'internal'): FastifyInstance =>
    createListener({
      routes: routes.filter((route) => route.listener === name),
      context,
      log: silentLog,
      requestLog: 'all',
      randomId: () => 'random-id',
      clock: systemClock,
      ...options.listener,
    });
  const [open, internal] = [listener('public'), listener('internal')];
  const seen = new Set<string>();
  const nameOf = operationNames(routes);
  const ask: ApiUnderTest['ask'] = async (request, at) => {
    const response = await (at === 'internal' ? internal : open).inject(request);
    const name = nameOf(at ?? 'public', request);
    if (name !== undefined) seen.add(`${name} ${String(response.statusCode)}`);
    return response;
  };
  return {
    open,
    internal,
    issuer,
    clock,
    seen,
    serve: (next) => (snapshot = next),
    setReady: (next) => (ready = next),
    ask,
    get: (url, headers = {}) => ask({ method: 'GET', url, headers }),
    close: async () => {
      await Promise.all([open.close(), internal.close()]);
      if (signIn.kind === 'bearer') signIn.close();
    },
  };
}

/** Finds the row of a request; the most literal path wins, as in the router. */
function operationNames(routes: readonly Route[]) {
  const rows = routes.flatMap((route) =>
    route.paths.map((path) => ({
      route,
      literal: path.replaceAll(/\{\w+\}|\*/g, '').length,
      ...patternOf(path),
    })),
  );
  return (listener: string, { method = 'GET', url }: InjectOptions): string | undefined => {
    const path = typeof url === 'string' ? (url.split('?')[0] ?? '') : '';
    const found = rows
      .filter(
        ({ route, pattern }) => route.listener === listener && route.method === method && pattern.test(path),
      )
      .toSorted((a, b) => b.literal - a.literal);
    return found[0]?.route.name;
  };
}

function patternOf(path: string): { readonly pattern: RegExp } {
  const source = path
    .replaceAll('.', '\\.')
    .replaceAll(/\{\w+\}/g, '[^/]+')
    .replaceAll('*', '.*');
  return { pattern: new RegExp(`^${source}$`) };
}

/** Headers of a caller whose token carries these claims. */
export async function bearer(
  key: SigningKey,
  claims: Readonly<Record<string, unknown>>,
): Promise<Record<string, string>> {
  return { authorization: `Bearer ${await signed(key, claims)}` };
}

function noStore(): never {
  throw new SkepError('registry/not-ready', { message: 'this test has no store' });
}
