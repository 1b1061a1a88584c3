import { isRecord } from '@skep/core/json/is-record.ts';
import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { manualClock, type ManualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { fakeIssuer, signed, type SigningKey } from '@skep/auth/token/tokens.fixture.ts';
import { AUDIENCE, ISSUER } from '@skep/auth/token/tokens.fixture.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { SignInMode } from '../access/authority.ts';
import { buildInfo } from '../config/build-info.ts';
import type { AuthConfig, OauthAuth } from '../config/auth.ts';
import type { Snapshot } from '../engine/snapshot.ts';
import { createListener, type ListenerOptions } from './http/listener.ts';
import { openApiDocument } from './openapi/openapi.ts';
import { DEFAULT_LIMITS, type Limits } from '../shape/limits.ts';
import type { Route, AdminParts } from './route/route.ts';
import { ROUTES } from './routes.ts';
import { openSignIn, type SignIn } from './sign-in/sign-in.ts';

// The HTTP interface over a snapshot, with an identity provider in memory, for the tests of this folder.

export interface TestRequest {
  readonly method?: string;
  /** The request target, sent as it is. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Text or bytes as they are; anything else as JSON, with its type. */
  readonly payload?: unknown;
}

export interface TestResponse {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly rawPayload: Buffer;
  /** Fails where the body is no JSON object. */
  json(): AnswerBody;
}

/** What bodies of answers may hold. Tests say which of it they expect; what is not there is undefined. */
export interface AnswerBody extends Item {
  readonly error: string;
  readonly metadata: { readonly count: number; readonly nextCursor?: string };
  readonly nextCursor?: string;
  readonly servers: Item[];
  readonly skills: Item[];
  readonly entries: Item[];
  readonly sources: Item[];
  readonly registries: Item[];
  readonly updatedCount: number;
  readonly issues: readonly { readonly message: string }[];
  readonly caller: object;
  readonly findings: Finding[];
  /** Of the OpenAPI document. */
  readonly paths: Readonly<Record<string, PathItem>>;
}

/** A row of a list, or what is read by itself. */
interface Item {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly status: string;
  readonly phase: string;
  readonly isLatest: boolean;
  readonly createdAt: string;
  readonly sourceConfig: object;
  readonly server: { readonly version: string; readonly remotes: object };
  readonly _meta: Readonly<Record<string, { readonly status: string; readonly isLatest: boolean }>>;
}

interface Finding {
  readonly layer: string;
  readonly allowed: boolean;
  readonly reason: string;
  readonly because: string;
}

type PathItem = Readonly<Partial<Record<'get' | 'put', Operation>>>;

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly schema: object }[];
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}

/** A listener that tests reach over a socket. */
export interface TestServer {
  readonly server: Server;
  /** Returns the base URL. Listens on the first request otherwise. */
  listen(): Promise<string>;
  inject(request: TestRequest | string): Promise<TestResponse>;
  close(): Promise<void>;
}

export interface ApiUnderTest {
  readonly open: TestServer;
  readonly internal: TestServer;
  readonly issuer: ReturnType<typeof fakeIssuer>;
  readonly clock: ManualClock;
  /** `operation status` of everything that was answered through `get`, on both listeners. */
  readonly seen: Set<string>;
  /** Replaces what is served. */
  serve(snapshot: Snapshot): void;
  setReady(ready: boolean): void;
  get(url: string, headers?: Readonly<Record<string, string>>): Promise<TestResponse>;
  ask(request: TestRequest, listener?: 'internal'): Promise<TestResponse>;
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
  readonly limits?: Partial<Limits>;
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
    logins: [{ issuer: ISSUER, clientId: 'skep', scopes: ['openid', 'offline_access'] }],
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
  const build = buildInfo({ nodeVersion: 'v24.0.0', platform: 'linux', arch: 'x64' });
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const document = JSON.stringify(openApiDocument({ routes, version: build.version, limits }));
  const context = {
    snapshot: () => snapshot,
    signIn: options.signIn ?? (() => signIn),
    providersAway: () => options.providersAway ?? [],
    admin: () => options.admin ?? noStore(),
    build,
    limits: () => limits,
    metrics: options.metrics ?? (() => Promise.reject(new SkepError('registry/no-such-route'))),
    ready: async () => {
      if (!ready) throw new SkepError('registry/not-ready');
    },
    openApi: () => document,
  };
  const listener = (name: 'public' | 'internal'): TestServer =>
    testServer(
      createListener({
        routes: routes.filter((route) => route.listener === name),
        context,
        log: silentLog,
        requestLog: 'all',
        randomId: () => 'random-id',
        clock: systemClock,
        ...options.listener,
      }),
    );
  const [open, internal] = [listener('public'), listener('internal')];
  const seen = new Set<string>();
  const nameOf = operationNames(routes);
  const ask: ApiUnderTest['ask'] = async (request, at) => {
    const response = await (at === 'internal' ? internal : open).inject(request);
    const name = nameOf(at ?? 'public', request);
    if (name !== undefined) seen.add(`${name} ${response.statusCode}`);
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
      signIn.close();
    },
  };
}

function testServer(server: Server): TestServer {
  let listening: Promise<unknown> | undefined;
  const listen = async (): Promise<number> => {
    listening ??= once(server.listen({ host: '127.0.0.1', port: 0 }), 'listening');
    await listening;
    return (server.address() as AddressInfo).port;
  };
  return {
    server,
    listen: async () => `http://127.0.0.1:${await listen()}`,
    inject: async (request) => send(await listen(), typeof request === 'string' ? { url: request } : request),
    close: async () => {
      server.closeAllConnections();
      if (server.listening) await once(server.close(), 'close');
    },
  };
}

async function send(
  port: number,
  { method = 'GET', url, headers, payload }: TestRequest,
): Promise<TestResponse> {
  const isRaw = payload === undefined || typeof payload === 'string' || Buffer.isBuffer(payload);
  const body = isRaw ? payload : JSON.stringify(payload);
  const sent = httpRequest({
    host: '127.0.0.1',
    port,
    method,
    path: url,
    headers: {
      ...(isRaw ? {} : { 'content-type': 'application/json' }),
      ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
      ...headers,
    },
  });
  const [response] = await once(sent.end(body), 'response');
  const rawPayload = await buffer(response);
  const text = rawPayload.toString();
  return {
    statusCode: response.statusCode,
    headers: response.headers,
    body: text,
    rawPayload,
    json: () => {
      const value: unknown = JSON.parse(text);
      if (!isRecord(value)) throw new Error(`no JSON object: ${text}`);
      return value as unknown as AnswerBody;
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
  return (listener: string, { method = 'GET', url }: TestRequest): string | undefined => {
    const path = url.split('?')[0] ?? '';
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
