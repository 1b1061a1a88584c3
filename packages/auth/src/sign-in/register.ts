import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { scopesOf } from './challenge.ts';
import { exchangeWith } from './oauth-failure.ts';
import type { AuthMethod, KeptClient, KeptSignIn, SignInWay } from './port.ts';
import { plain, type Reach } from './reach.ts';

export interface Registration {
  readonly server: oauth.AuthorizationServer;
  readonly way: SignInWay;
  readonly scopes: readonly string[];
  /** The port of the redirect URI, for the way `browser`. */
  readonly callbackPort?: number | undefined;
}

/** Statuses of endpoints that are not there (RFC 9110 §15). */
const NOT_OFFERED: ReadonlySet<number> = new Set([404, 405, 501]);
/** What a registration endpoint answers for a client that it does not know (RFC 7592 §2.1). */
const FORGOTTEN: ReadonlySet<number> = new Set([401, 403, 404, 410]);
const DAY_MS = 86_400_000;
const GRANTS: Readonly<Record<SignInWay, string>> = {
  browser: 'authorization_code',
  device: 'urn:ietf:params:oauth:grant-type:device_code',
  'client-credentials': 'client_credentials',
  assertion: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
};

export function redirectUri(port: number): string {
  return `http://localhost:${port}/callback`;
}

/**
 * Registers a client (RFC 7591). Fails with `auth/client-needed` where the server registers none, and as `exchangeWith`.
 */
export async function registerClient(registration: Registration, reach: Reach): Promise<KeptClient> {
  const { server } = registration;
  if (typeof server.registration_endpoint !== 'string') throw clientNeeded(server);
  const metadata = metadataFor(registration, registeredMethod(server));
  const body = await exchangeWith(server, [], async () => {
    const answer = await oauth.dynamicClientRegistrationRequest(server, metadata, reach.options);
    if (NOT_OFFERED.has(answer.status)) throw clientNeeded(server);
    return oauth.processDynamicClientRegistrationResponse(await asConform(answer));
  });
  return asClient(body, metadata.token_endpoint_auth_method, registration);
}

/**
 * The client of a sign-in as an update of its registration left it (RFC 7592 §2.2): its secret is not sent, so that a server that
 * gives secrets with an end gives another. Fails as `exchangeWith`, and with `auth/bad-answer` where the answer is about another client.
 */
export async function renewRegistration(kept: KeptSignIn, reach: Reach): Promise<KeptClient> {
  const { client, way, issuer } = kept;
  const { uri = '', token, scopes = [], callbackPort } = client.registered ?? {};
  const registration = { server: { issuer }, way, scopes, callbackPort };
  const metadata = { ...metadataFor(registration, client.authMethod), client_id: client.id };
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json',
  };
  const body = await exchangeWith({ issuer }, [token, client.secret], async () => {
    const asking = { method: 'PUT', headers, body: JSON.stringify(metadata) } as const;
    const answer = await plain(await reach.send(uri, asking));
    return oauth.processDynamicClientRegistrationResponse(await asConform(answer));
  });
  const renewed = asClient(body, client.authMethod, registration, client);
  if (renewed.id === client.id && renewed.authMethod === client.authMethod) return renewed;
  const message = `"${issuer}" answered with the registration of another client, or of another kind`;
  throw new SkepError('auth/bad-answer', { message });
}

/** Whether the secret of a registered client ends within a day, or has ended. */
export function endsSoon({ registered }: KeptClient, now: number): boolean {
  return (registered?.secretExpiresAt ?? Infinity) - now <= DAY_MS;
}

/** Whether it does, and its server has said where registrations are changed. */
export function isToRenew(client: KeptClient, now: number): boolean {
  const { uri, token } = client.registered ?? {};
  return uri !== undefined && token !== undefined && endsSoon(client, now);
}

/** Whether the server still knows a client (RFC 7592 §2.1); true where it cannot be asked. */
export async function isRegistered({ registered }: KeptClient, reach: Reach): Promise<boolean> {
  const { uri, token } = registered ?? {};
  if (uri === undefined || token === undefined) return true;
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
  const answer = await reach.send(uri, { headers }).catch(() => undefined);
  return answer === undefined || !FORGOTTEN.has(answer.status);
}

function clientNeeded(server: oauth.AuthorizationServer): SkepError {
  const message = `"${server.issuer}" does not register clients by itself`;
  return new SkepError('auth/client-needed', { message });
}

type Metadata = Partial<oauth.OmitSymbolProperties<oauth.Client>> & {
  readonly token_endpoint_auth_method: AuthMethod;
};

function metadataFor({ way, scopes, callbackPort }: Registration, method: AuthMethod): Metadata {
  return {
    ...(callbackPort === undefined ? {} : { redirect_uris: [redirectUri(callbackPort)] }),
    client_name: 'Skep MCP Client',
    application_type: 'native',
    token_endpoint_auth_method: method,
    grant_types: [GRANTS[way], 'refresh_token'],
    response_types: way === 'browser' ? ['code'] : [],
    ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
  };
}

/** A program on somebody's machine keeps no secret, so it has one only where the server insists. */
function registeredMethod(server: oauth.AuthorizationServer): AuthMethod {
  const methods: unknown = server.token_endpoint_auth_methods_supported;
  if (!Array.isArray(methods) || methods.includes('none')) return 'none';
  return methods.includes('client_secret_basic') || !methods.includes('client_secret_post')
    ? 'client_secret_basic'
    : 'client_secret_post';
}

/** Many servers answer with 200, leave out when the secret ends (RFC 7591 §3.2.1), or write null for what there is not. */
async function asConform(answer: Response): Promise<Response> {
  if (answer.status !== 200 && answer.status !== 201) return answer;
  const body = parsedJson(await answer.text());
  const whole = isRecord(body) ? { client_secret_expires_at: 0, ...withoutNull(body) } : body;
  const headers = { 'content-type': 'application/json' };
  return new Response(JSON.stringify(whole) ?? 'null', { status: 201, headers });
}

function withoutNull(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

function asClient(
  body: Readonly<Record<string, unknown>>,
  asked: AuthMethod,
  { server, callbackPort, scopes }: Registration,
  before?: KeptClient,
): KeptClient {
  const { client_id: id, client_secret_expires_at: end } = body;
  const method = methodOf(body['token_endpoint_auth_method']) ?? asked;
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' && value !== '' ? value : undefined;
  const secret = text(body['client_secret']) ?? before?.secret;
  const { uri, token } = before?.registered ?? {};
  const askedAt = uri ?? server.registration_endpoint;
  return {
    id: text(id) ?? '',
    secret: method === 'none' ? undefined : secret,
    authMethod: method !== 'none' && secret === undefined ? 'none' : method,
    registered: {
      uri: addressIn(body['registration_client_uri'], { askedAt, issuer: server.issuer }) ?? uri,
      token: text(body['registration_access_token']) ?? token,
      secretExpiresAt: typeof end === 'number' && end > 0 ? end * 1_000 : undefined,
      callbackPort,
      scopes: scopesOf(text(body['scope'])) ?? (scopes.length === 0 ? undefined : scopes),
    },
  };
}

interface Places {
  /** Where the registration was asked for. */
  readonly askedAt: string | undefined;
  readonly issuer: string;
}

/**
 * Where the registration is changed. Some servers write it without their own origin. What is no address is of no use, and one of
 * another origin than theirs is shown no registration token (decision 0461).
 */
function addressIn(value: unknown, { askedAt, issuer }: Places): string | undefined {
  const url = typeof value === 'string' && value !== '' ? URL.parse(value, askedAt) : null;
  const isTheirs = [askedAt ?? '', issuer].some((one) => URL.parse(one)?.origin === url?.origin);
  return url !== null && isTheirs ? url.href : undefined;
}

function methodOf(value: unknown): AuthMethod | undefined {
  return value === 'none' || value === 'client_secret_basic' || value === 'client_secret_post'
    ? value
    : undefined;
}
