import { SkepError } from '@skep/core/errors/skep-error.ts';
import { shownUrl } from '@skep/core/fetch/requester.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { causeText } from '../token/outcome.ts';
import { scopesOf } from './challenge.ts';
import type { SignInServices } from './port.ts';
import { isEndless, parsedUrl, type Reach } from './reach.ts';

/** What a resource says about itself (RFC 9728 §2). */
export interface ResourceDocument {
  /** Its identifier, as it is written there. */
  readonly resource: string;
  readonly authorizationServers: readonly string[];
  readonly scopes: readonly string[] | undefined;
}

interface Services extends Pick<SignInServices, 'log' | 'signal'> {
  readonly reach: Pick<Reach, 'read'>;
}

/** More would be a server that has us try addresses. */
const MAX_SERVERS = 5;

/**
 * The metadata of the resource at `url`: where its challenge says (`told`), else at the well-known addresses with and without its
 * path. Undefined where there is none. Fails with `auth/bad-metadata` for one about another resource.
 */
export async function findResource(
  url: URL,
  told: string | undefined,
  services: Services,
): Promise<ResourceDocument | undefined> {
  for (const address of [...(told === undefined ? [] : [told]), ...wellKnown(url)]) {
    const found = await readAt(address, services);
    if (found === undefined) continue;
    if (isAbout(found.resource, url)) return found;
    const message = `the metadata of "${shownUrl(url)}" is about "${found.resource.slice(0, 200)}"; tokens for that are not asked for`;
    throw new SkepError('auth/bad-metadata', { message });
  }
  return undefined;
}

/** RFC 9728 §3.1. */
function wellKnown({ origin, pathname }: URL): readonly string[] {
  const root = `${origin}/.well-known/oauth-protected-resource`;
  const path = pathname.replace(/\/$/u, '');
  return path === '' ? [root] : [`${root}${path}`, root];
}

async function readAt(
  address: string,
  { reach, log, signal }: Services,
): Promise<ResourceDocument | undefined> {
  try {
    const answer = await reach.read(parsedUrl(address).href);
    if (answer.status !== 200)
      throw new SkepError('fetch/bad-status', { message: `answered with status ${answer.status}` });
    return asDocument(parsedJson(await answer.text()));
  } catch (error) {
    signal?.throwIfAborted();
    log.info(
      { address: address.slice(0, 500), reason: causeText(error) },
      'no metadata of the resource here',
    );
    return undefined;
  }
}

function asDocument(body: unknown): ResourceDocument {
  if (!isRecord(body) || typeof body['resource'] !== 'string')
    throw new SkepError('fetch/not-json', { message: 'this is no metadata of a resource' });
  const { resource, authorization_servers: servers, scopes_supported: scopes } = body;
  const scopeList = textsOf(scopes).join(' ');
  return {
    resource,
    authorizationServers: textsOf(servers)
      .filter((one) => !isEndless(one))
      .slice(0, MAX_SERVERS),
    scopes: scopesOf(scopeList),
  };
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** It names the resource itself, or what that lies below (RFC 9728 §3.3; MCP allows one document for a whole host). */
function isAbout(resource: string, url: URL): boolean {
  const named = URL.parse(resource);
  if (named === null || named.origin !== url.origin || named.hash !== '') return false;
  const parent = named.pathname.replace(/\/$/u, '');
  return url.pathname === parent || url.pathname.startsWith(`${parent}/`);
}
