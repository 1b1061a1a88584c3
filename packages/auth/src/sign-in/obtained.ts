import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { scopesOf } from './challenge.ts';
import type { Discovered } from './discover.ts';
import type { KeptClient, KeptSignIn, SignInTarget, SignInWay } from './port.ts';
import type { Reach } from './reach.ts';

/** Where a server does not say how long its token is good. */
const USUAL_LIFE_S = 3_600;

type Tokens = Pick<KeptSignIn, 'accessToken' | 'obtainedAt' | 'expiresAt' | 'refreshToken' | 'subject'> & {
  readonly scopes: readonly string[];
};

/** What is kept of an answer of a token endpoint. Fails with `auth/bad-answer` for a token that no header can carry. */
export function tokensOf(
  answer: oauth.TokenEndpointResponse,
  { now, asked }: { readonly now: number; readonly asked: readonly string[] },
): Tokens {
  const { access_token: accessToken, expires_in: life = USUAL_LIFE_S, refresh_token: refreshToken } = answer;
  // It becomes the value of a header (RFC 6750 §2.1).
  if (!/^[\w.~+/-]+=*$/u.test(accessToken))
    throw new SkepError('auth/bad-answer', {
      message: 'the access token is not one that a header can carry',
    });
  return {
    accessToken,
    obtainedAt: now,
    expiresAt: now + life * 1_000,
    refreshToken,
    scopes: scopesOf(answer.scope) ?? asked,
    subject: oauth.getValidatedIdTokenClaims(answer)?.sub,
  };
}

interface SignedIn {
  readonly target: SignInTarget;
  readonly way: SignInWay;
  readonly found: Discovered;
  readonly client: KeptClient;
  readonly reach: Pick<Reach, 'mayBePrivate'>;
}

/** A sign-in as it is kept. */
export function keptOf(
  { target, way, found, client, reach }: SignedIn,
  answer: oauth.TokenEndpointResponse,
  now: number,
): KeptSignIn {
  const { server, resourceIndicator, stepUp } = found;
  return {
    version: 1,
    way,
    resource: target.resource,
    issuer: server.issuer,
    tokenEndpoint: server.token_endpoint ?? '',
    revocationEndpoint: server.revocation_endpoint,
    mayBePrivate: reach.mayBePrivate,
    client,
    resourceIndicator,
    stepUp,
    ...tokensOf(answer, { now, asked: found.scopes }),
  };
}

/** The client as the library wants it; clocks may differ by some minutes. */
export function libraryClient({ id }: KeptClient): oauth.Client {
  return { client_id: id, [oauth.clockTolerance]: CLOCK_TOLERANCE_S };
}

const CLOCK_TOLERANCE_S = 300;

/** The answer without an identity token, where nobody asks who it is about: a new one need not be checked then. */
export async function withoutIdentity(answer: Response): Promise<Response> {
  if (answer.status !== 200) return answer;
  const body = parsedJson(await answer.text());
  if (!isRecord(body)) return new Response(null, { status: 200 });
  const { id_token: _, ...rest } = body;
  return Response.json(rest);
}

/** The parameter of RFC 8707, where it is sent. */
export function resourceParameter(resource: string | undefined): Record<string, string> {
  return resource === undefined ? {} : { resource };
}
