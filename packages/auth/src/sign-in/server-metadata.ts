import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { shownUrl } from '@skep/core/fetch/requester.ts';
import { causeText } from '../token/outcome.ts';
import type { SignInServices, SignInWay } from './port.ts';
import { isEndless, parsedUrl, type Reach } from './reach.ts';

/** An authorization server, and whether its metadata is that of an OpenID provider. */
export interface FoundServer {
  readonly server: oauth.AuthorizationServer;
  readonly isOpenId: boolean;
}

interface Services extends Pick<SignInServices, 'log' | 'signal'> {
  readonly reach: Pick<Reach, 'read'>;
  readonly assumesPkce?: boolean | undefined;
}

/**
 * The metadata of `issuer`, at the addresses of RFC 8414 §3.1 and of OpenID Connect Discovery 1.0 §4, in the order of MCP. Fails
 * with `auth/bad-metadata` where none of them has a usable document about this issuer.
 */
export async function findServer(issuer: string, way: SignInWay, services: Services): Promise<FoundServer> {
  const url = parsedUrl(issuer);
  url.search = '';
  url.hash = '';
  let reason = '';
  for (const address of wellKnown(url)) {
    try {
      const isOpenId = address.includes('openid-configuration');
      const server = await readAt(address, url, services);
      checkServer(server, way, isOpenId && services.assumesPkce === true);
      return { server: isOpenId ? await withRegistration(server, url, services) : server, isOpenId };
    } catch (error) {
      services.signal?.throwIfAborted();
      services.log.info({ address, reason: causeText(error) }, 'no metadata of an authorization server here');
      // What is said of a document that is there tells more than that others are missing.
      if (reason === '' || !isMissing(error)) reason = describe(error);
    }
  }
  const message = `"${shownUrl(url)}" cannot be used for signing in: ${reason}`;
  throw new SkepError('auth/bad-metadata', { message });
}

function isMissing(error: unknown): boolean {
  return error instanceof SkepError && error.code === 'fetch/bad-status';
}

function wellKnown({ origin, pathname }: URL): readonly string[] {
  const path = pathname.replace(/\/+$/u, '');
  return Array.from(
    new Set([
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      `${origin}${path}/.well-known/openid-configuration`,
    ]),
  );
}

async function readAt(address: string, issuer: URL, { reach }: Services): Promise<oauth.AuthorizationServer> {
  const answer = await reach.read(address);
  if (answer.status !== 200)
    throw new SkepError('fetch/bad-status', {
      message: `"${address}" answered with status ${answer.status}`,
    });
  return oauth.processDiscoveryResponse(issuer, answer);
}

/** OpenID providers may name their registration only in the other document about the same issuer. */
async function withRegistration(
  server: oauth.AuthorizationServer,
  issuer: URL,
  services: Services,
): Promise<oauth.AuthorizationServer> {
  const [address] = wellKnown(issuer);
  if (server.registration_endpoint !== undefined || address === undefined) return server;
  const other = await readAt(address, issuer, services).catch(() => undefined);
  services.signal?.throwIfAborted();
  const { registration_endpoint: found } = other ?? {};
  return found === undefined ? server : { ...server, registration_endpoint: found };
}

/** What each way needs; MCP has clients refuse a server that does not say that it knows S256, unless `assumesPkce`. */
function checkServer(server: oauth.AuthorizationServer, way: SignInWay, assumesPkce: boolean): void {
  const methods: unknown = server.code_challenge_methods_supported;
  const needed: readonly (keyof oauth.AuthorizationServer)[] = [
    'token_endpoint',
    ...(way === 'browser' ? (['authorization_endpoint'] as const) : []),
    ...(way === 'device' ? (['device_authorization_endpoint'] as const) : []),
  ];
  for (const name of needed)
    if (typeof server[name] !== 'string' || !URL.canParse(server[name]))
      throw unusable(`it names no ${name}`);
  for (const [name, value] of Object.entries(server))
    if (name.endsWith('_endpoint') && typeof value === 'string' && isEndless(value))
      throw unusable(`its ${name} is a very long address`);
  const isUnsaid = assumesPkce && methods === undefined;
  if (way === 'browser' && !isUnsaid && !(Array.isArray(methods) && methods.includes('S256')))
    throw unusable('it does not say that it knows PKCE with S256');
}

function unusable(why: string): SkepError {
  return new SkepError('auth/bad-metadata', { message: why });
}

function describe(error: unknown): string {
  if (error instanceof SkepError) return error.message;
  const isOther =
    error instanceof oauth.OperationProcessingError && error.code === oauth.JSON_ATTRIBUTE_COMPARISON;
  return isOther ? 'its metadata is about another issuer' : 'its metadata is not what RFC 8414 asks for';
}
