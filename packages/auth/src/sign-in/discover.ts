import { SkepError } from '@skep/core/errors/skep-error.ts';
import { shownUrl } from '@skep/core/fetch/requester.ts';
import { causeText } from '../token/outcome.ts';
import { tokenChallenge, type Challenge } from './challenge.ts';
import type { KeptSignIn, SignInServices, SignInTarget, SignInWay } from './port.ts';
import { probe } from './probe.ts';
import { canBind } from './proof.ts';
import { parsedUrl, type Reach } from './reach.ts';
import { findResource, type ResourceDocument } from './resource-metadata.ts';
import { chooseScopes, stepUp } from './scopes.ts';
import { findServer, type FoundServer } from './server-metadata.ts';

/** All that a way of signing in needs to know. */
export interface Discovered extends FoundServer {
  readonly scopes: readonly string[];
  /** RFC 8707. */
  readonly resourceIndicator: string | undefined;
  readonly stepUp: KeptSignIn['stepUp'];
  /** Whether the resource takes tokens that are bound to a key, and the server binds them. */
  readonly isBound: boolean;
  /** False where the operator gave the endpoints: then who answers is not told apart by its issuer. */
  readonly hasIssuer: boolean;
}

interface Services extends SignInServices {
  readonly reach: Reach;
}

/**
 * Finds the authorization server of a resource, in the order of decision 0347: what the operator named, the realm of the challenge, the
 * metadata of the resource, the host of the resource itself. Fails with `auth/no-sign-in` or `auth/bad-metadata`.
 */
export async function discover(
  target: SignInTarget,
  way: SignInWay,
  services: Services,
): Promise<Discovered> {
  const url = parsedUrl(target.resource);
  const { resourceIndicator: given } = target;
  const challenge = await challengeOf(target, services);
  const document = await documentOf(target, url, challenge, services);
  const found = fixedServer(target) ?? (await serverOf(target, way, { url, challenge, document, services }));
  const more = stepUp(services.kept, challenge, target.scopes);
  const scopes =
    more?.scopes ?? chooseScopes({ target, challenge, ofResource: document?.scopes, ...found }, way);
  return {
    ...found,
    scopes,
    stepUp: more,
    isBound: wantsBound(challenge, services.kept, found) && canBind(found.server),
    hasIssuer: fixedServer(target) === undefined,
    resourceIndicator: given === '' ? undefined : (given ?? document?.resource ?? canonical(url)),
  };
}

/** As its challenge says; where nobody asked for one, as it was before with the same server. */
function wantsBound(
  challenge: Challenge | undefined,
  kept: KeptSignIn | undefined,
  { server }: FoundServer,
): boolean {
  if (challenge !== undefined) return challenge.scheme === 'dpop';
  return kept?.proofKey !== undefined && kept.issuer === server.issuer;
}

/** Without a fragment (RFC 8707 §2). A host alone is written without the slash that parsers add. */
function canonical(url: URL): string {
  const whole = url.href.split('#', 1)[0] ?? '';
  return url.pathname === '/' && url.search === '' ? whole.replace(/\/$/u, '') : whole;
}

/** Where the operator named the server, nobody needs to ask the resource who that is. */
async function challengeOf(target: SignInTarget, services: Services): Promise<Challenge | undefined> {
  if (services.challenge !== undefined) return tokenChallenge(services.challenge);
  if (target.issuer !== undefined || target.tokenUrl !== undefined) return undefined;
  const demand = await probe(target, services);
  if (demand.kind === 'sign-in' && demand.challenge !== undefined) return tokenChallenge(demand.challenge);
  if (demand.kind === 'unknown')
    services.log.warn({ reason: demand.reason }, 'cannot tell whether the server demands a sign-in');
  if (demand.kind !== 'other') return undefined;
  const message = `"${shownUrl(parsedUrl(target.resource))}" asks for ${demand.schemes.join(' or ')} authentication, not for a token`;
  throw new SkepError('auth/no-sign-in', { message });
}

/** What a resource says about itself counts less than what the operator says, so it may be wrong where he has named the server. */
async function documentOf(
  target: SignInTarget,
  url: URL,
  challenge: Challenge | undefined,
  services: Services,
): Promise<ResourceDocument | undefined> {
  try {
    return await findResource(url, challenge?.resourceMetadata, services);
  } catch (error) {
    services.signal?.throwIfAborted();
    if (target.issuer === undefined && target.tokenUrl === undefined) throw error;
    services.log.warn({ reason: causeText(error) }, 'the metadata of the server is not used');
    return undefined;
  }
}

/** The endpoints that the operator gave, for servers without metadata. */
function fixedServer({ authorizeUrl, tokenUrl }: SignInTarget): FoundServer | undefined {
  if (tokenUrl === undefined) return undefined;
  const { origin } = parsedUrl(tokenUrl);
  const authorization = authorizeUrl === undefined ? {} : { authorization_endpoint: authorizeUrl };
  return { server: { issuer: origin, token_endpoint: tokenUrl, ...authorization }, isOpenId: false };
}

interface Clues {
  readonly url: URL;
  readonly challenge: Challenge | undefined;
  readonly document: ResourceDocument | undefined;
  readonly services: Services;
}

async function serverOf(target: SignInTarget, way: SignInWay, clues: Clues): Promise<FoundServer> {
  const { url, challenge, document } = clues;
  const services = { ...clues.services, assumesPkce: target.assumesPkce };
  if (target.issuer !== undefined) return findServer(target.issuer, way, services);
  const realm = issuerOf(challenge?.realm);
  const named = [...(realm === undefined ? [] : [realm]), ...(document?.authorizationServers ?? [])];
  const failures: unknown[] = [];
  // A resource that names its servers means those; its own host is only asked where it names none.
  for (const issuer of (document?.authorizationServers.length ?? 0) > 0 ? named : [...named, url.origin]) {
    try {
      return await findServer(issuer, way, services);
    } catch (error) {
      services.signal?.throwIfAborted();
      failures.push(error);
    }
  }
  const [first] = failures;
  if (named.length > 0 && first instanceof SkepError) throw first;
  throw new SkepError('auth/no-sign-in', {
    message: `"${shownUrl(url)}" does not say where to sign in`,
  });
}

/** A realm is an issuer only where it is an https URL. */
function issuerOf(realm: string | undefined): string | undefined {
  const url = realm === undefined ? null : URL.parse(realm);
  return url?.protocol === 'https:' ? `${url.origin}${url.pathname === '/' ? '' : url.pathname}` : undefined;
}
