import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { saidBy, statusOf } from '@skep/core/fetch/client.ts';
import { shownServer } from './registry-address.ts';

/** How a request said who asks: by nothing, by the file of `SKEP_TOKEN_FILE`, or by a sign-in. */
export type Proof = 'nothing' | 'file' | 'sign-in';

/**
 * What a registry means by a refusal, for the person who asked: 401 and 403 become `auth/not-signed-in`,
 * `auth/sign-in-ended` and `access/forbidden`, each with the next step. Everything else stays as it is.
 */
export function explainedRefusal(error: unknown, server: string, proof: Proof): unknown {
  const status = statusOf(error);
  const isOfSource = proof === 'sign-in';
  if ((isOfSource && hasCode(error, 'auth/not-signed-in')) || (status === 401 && proof === 'nothing'))
    return nobody(server, error);
  if ((isOfSource && hasCode(error, 'auth/sign-in-ended')) || status === 401)
    return ended(server, proof, error);
  if (status === 403) {
    const said = saidBy(error);
    return new SkepError('access/forbidden', {
      message: `${shownServer(server)} refuses${said === undefined ? ' you' : `: ${said}`}`,
      hint:
        proof === 'nothing' ? `sign in with skep login ${server}` : 'see who you are there with skep whoami',
      detail: { status },
      cause: error,
    });
  }
  if (proof !== 'nothing' && status !== undefined && status >= 300 && status < 400) {
    return new SkepError('fetch/bad-status', {
      message: `${shownServer(server)} redirects, and what proves who you are goes to no other address`,
      hint: 'sign in to the address where the registry is',
      detail: { status },
      cause: error,
    });
  }
  return error;
}

function nobody(server: string, cause: unknown): SkepError {
  return new SkepError('auth/not-signed-in', {
    message: `${shownServer(server)} wants to know who asks, and you are signed in as nobody`,
    hint: `sign in with skep login ${server}`,
    detail: { status: 401 },
    cause,
  });
}

function ended(server: string, proof: Proof, cause: unknown): SkepError {
  if (proof === 'file') {
    return new SkepError('auth/sign-in-ended', {
      message: `${shownServer(server)} does not accept the token of SKEP_TOKEN_FILE`,
      hint: 'it may have expired, or be for something else; put another one there',
      detail: { status: 401 },
      cause,
    });
  }
  return new SkepError('auth/sign-in-ended', {
    message: `your sign-in to ${shownServer(server)} has expired`,
    hint: `sign in again with skep login ${server}`,
    detail: { status: 401 },
    cause,
  });
}
