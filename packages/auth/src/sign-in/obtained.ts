import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { ReadyAttempt } from './attempt.ts';
import { scopesOf } from './challenge.ts';
import type { KeptSignIn } from './port.ts';

/** Where a server does not say how long its token is good. */
const USUAL_LIFE_S = 3_600;
/** Ten years: later times are none that can be written down. */
const MAX_LIFE_S = 315_360_000;

type Tokens = Pick<KeptSignIn, 'accessToken' | 'obtainedAt' | 'expiresAt' | 'refreshToken' | 'subject'> & {
  readonly scopes: readonly string[];
};

interface Obtained {
  readonly now: number;
  /** Scopes. */
  readonly asked: readonly string[];
  /** Whether a key of ours was shown with the request. */
  readonly isBound: boolean;
}

/** What is kept of an answer of a token endpoint. Fails with `auth/bad-answer` for a token that no header can carry. */
export function tokensOf(answer: oauth.TokenEndpointResponse, { now, asked, isBound }: Obtained): Tokens {
  const { access_token: accessToken, expires_in: life = USUAL_LIFE_S, refresh_token: refreshToken } = answer;
  if (answer.token_type === 'dpop' && !isBound)
    throw new SkepError('auth/bad-answer', {
      message: 'the access token is bound to a key that is not ours',
    });
  // It becomes the value of a header (RFC 6750 §2.1).
  if (!/^[\w.~+/-]+=*$/u.test(accessToken))
    throw new SkepError('auth/bad-answer', {
      message: 'the access token is not one that a header can carry',
    });
  return {
    accessToken,
    obtainedAt: now,
    expiresAt: now + Math.min(life, MAX_LIFE_S) * 1_000,
    refreshToken,
    scopes: scopesOf(answer.scope) ?? asked,
    subject: oauth.getValidatedIdTokenClaims(answer)?.sub,
  };
}

/** A sign-in as it is kept. */
export function keptOf(
  { target, way, found, client, reach, prover }: ReadyAttempt,
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
    authorizeParams: way === 'browser' || way === 'device' ? undefined : target.authorizeParams,
    proofKey: answer.token_type === 'dpop' ? prover?.key : undefined,
    ...tokensOf(answer, { now, asked: found.scopes, isBound: prover !== undefined }),
  };
}

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
