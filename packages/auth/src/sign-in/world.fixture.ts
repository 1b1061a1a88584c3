import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { listen } from '@skep/core/fetch/listen.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { SOME_SIGN_IN } from './memory-store.fixture.ts';
import type { KeptSignIn, Person, SignInServices, SignInTarget } from './port.ts';
import { createSignInFetch, type Guarding, type SignInFetch } from './sign-in-fetch.ts';

// A resource and its authorization server on loopback, scripted, for the tests of this folder.

export interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly form: URLSearchParams;
}

export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: unknown;
}

type Handler = (asked: Asked) => Answer | Promise<Answer>;

/** One HTTP server whose answers are set by `METHOD path`; 404 for anything else. */
export interface Scripted extends AsyncDisposable {
  readonly origin: string;
  readonly asked: Asked[];
  readonly on: Map<string, Handler>;
  /** The requests of one `METHOD path`. */
  readonly of: (key: string) => Asked[];
}

export async function startScripted(): Promise<Scripted> {
  const asked: Asked[] = [];
  const on = new Map<string, Handler>();
  const server: Server = createServer((request, response) => void serve(request, response, { asked, on }));
  const port = await listen(server, '127.0.0.1', 0);
  return {
    origin: `http://localhost:${port}`,
    asked,
    on,
    of: (key) => asked.filter(({ method, url }) => `${method} ${url.pathname}` === key),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  { asked, on }: Pick<Scripted, 'asked' | 'on'>,
): Promise<void> {
  const body = await text(request);
  const url = new URL(request.url ?? '', `http://${request.headers.host ?? 'localhost'}`);
  const method = request.method ?? '';
  const one = { method, url, headers: request.headers, body, form: new URLSearchParams(body) };
  asked.push(one);
  const handler = on.get(`${method} ${url.pathname}`);
  const answer = handler === undefined ? { status: 404 } : await handler(one);
  if (response.destroyed) return;
  const type = answer.body === undefined ? {} : { 'content-type': 'application/json' };
  response.writeHead(answer.status ?? 200, { ...type, ...answer.headers });
  response.end(typeof answer.body === 'string' ? answer.body : answer.body && JSON.stringify(answer.body));
}

export interface World extends AsyncDisposable {
  readonly resource: Scripted;
  readonly server: Scripted;
  readonly target: SignInTarget;
  /** Members that the metadata of the server has besides, or instead. */
  readonly metadata: Record<string, unknown>;
  /** The refresh token that is good now; each can be used once. */
  readonly refreshToken: () => string | undefined;
  /** Seconds of an access token's life. */
  life: number;
}

/** A resource that demands a token, and a server with everything: registration, rotating refresh tokens, devices, revocation. */
export async function startWorld(): Promise<World> {
  const resource = await startScripted();
  const server = await startScripted();
  const target = {
    resource: `${resource.origin}/mcp`,
    callbackPort: 0,
    mayBePrivate: { resource: true, issuer: true },
  };
  const metadata: Record<string, unknown> = {};
  let current: string | undefined;
  const world: World = {
    resource,
    server,
    target,
    metadata,
    life: 3_600,
    refreshToken: () => current,
    async [Symbol.asyncDispose]() {
      await resource[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
  const document = `${resource.origin}/.well-known/oauth-protected-resource/mcp`;
  const demand = { status: 401, headers: { 'www-authenticate': `Bearer resource_metadata="${document}"` } };
  resource.on.set('GET /mcp', () => demand);
  resource.on.set('POST /mcp', () => demand);
  resource.on.set('GET /.well-known/oauth-protected-resource/mcp', () => ({
    body: { resource: target.resource, authorization_servers: [server.origin] },
  }));
  server.on.set('GET /.well-known/oauth-authorization-server', () => ({
    body: { ...metadataOf(server.origin), ...metadata },
  }));
  server.on.set('GET /authorize', ({ url }) => comeBack(url, server.origin));
  server.on.set('POST /register', ({ body }) => ({
    status: 201,
    body: { ...(JSON.parse(body) as object), client_id: `client-${randomUUID()}` },
  }));
  server.on.set('POST /token', ({ form }) => {
    const given = form.get('refresh_token') ?? undefined;
    if (form.get('grant_type') === 'refresh_token' && given !== current)
      return { status: 400, body: { error: 'invalid_grant' } };
    current = `refresh-${randomUUID()}`;
    return { body: tokens(current, world.life) };
  });
  server.on.set('POST /revoke', () => ({ status: 200 }));
  return world;
}

/** What is kept of a sign-in there, without tokens. */
export function signInAt({ target: { resource }, server: { origin } }: World): KeptSignIn {
  const tokenEndpoint = `${origin}/token`;
  return { ...SOME_SIGN_IN, resource, issuer: origin, tokenEndpoint, mayBePrivate: true };
}

function metadataOf(origin: string): object {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    revocation_endpoint: `${origin}/revoke`,
    device_authorization_endpoint: `${origin}/device`,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'private_key_jwt'],
  };
}

export function tokens(refreshToken: string | undefined, life = 3_600): Record<string, unknown> {
  return {
    access_token: `access-${randomUUID()}`,
    token_type: 'bearer',
    expires_in: life,
    ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
  };
}

/** The redirect of an authorization endpoint; `changes` sets parameters, `undefined` takes one away. */
export function comeBack(
  url: URL,
  issuer: string,
  changes: Readonly<Record<string, string | undefined>> = {},
): Answer {
  const back = new URL(url.searchParams.get('redirect_uri') ?? '');
  const parameters = {
    code: 'code-1234',
    state: url.searchParams.get('state') ?? '',
    iss: issuer,
    ...changes,
  };
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) back.searchParams.set(name, value);
  return { status: 302, headers: { location: back.href } };
}

interface Page {
  readonly status: number;
  readonly text: string;
}

/** Somebody whose browser follows redirects and says yes to everything. `pages` are the last pages that it comes to. */
export function browsingPerson(): Person & { readonly pages: Promise<Page>[] } {
  const pages: Promise<Page>[] = [];
  const visit = async (address: string): Promise<Page> => {
    const page = await fetch(address);
    return { status: page.status, text: await page.text() };
  };
  return {
    pages,
    show() {},
    async open(address) {
      const page = visit(address);
      pages.push(page);
      await page;
    },
  };
}

export function servicesWith(changes: Partial<SignInServices> = {}): SignInServices & AsyncDisposable {
  const real = createSignInFetch({ timeoutMs: 2_000 });
  return {
    fetch: real,
    clock: systemClock,
    log: silentLog,
    timeoutMs: 5_000,
    ...changes,
    [Symbol.asyncDispose]: () => Promise.resolve(real.close()),
  };
}

/** An internet of documents by address, for hosts that no test can have. `guarded` refuses hosts that end in `.internal`. */
export function documents(
  answers: Readonly<Record<string, () => Response>>,
): SignInFetch & { readonly asked: string[] } {
  const asked: string[] = [];
  const open: Guarding['open'] = (url) => {
    asked.push(url);
    return Promise.resolve(answers[url]?.() ?? new Response(null, { status: 404 }));
  };
  const isInternal = (url: string): boolean => new URL(url).hostname.endsWith('.internal');
  const guarded: Guarding['guarded'] = (url, request) =>
    isInternal(url) ? Promise.reject(new SkepError('fetch/refused-address')) : open(url, request);
  return {
    asked,
    resource: { open, guarded },
    other: { open, guarded },
    head: () => Promise.resolve({ status: 401, headers: {} }),
    isPrivate: (url) => Promise.resolve(isInternal(url.href)),
    close() {},
  };
}

/** A clock whose sleeps take no time but are counted as if they did. */
export function fastClock(
  time: () => number = Date.now,
): SignInServices['clock'] & { readonly slept: number[] } {
  const slept: number[] = [];
  let passed = 0;
  return {
    ...systemClock,
    slept,
    now: () => time() + passed,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      slept.push(ms);
      passed += ms;
    },
  };
}
