import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { Code } from '@skep/core/errors/codes.ts';
import { printable } from '@skep/core/terminal/printable.ts';

/** What an authorization server says went wrong (RFC 6749 §5.2); `error` and `status` are in the detail of the failure. */
interface Said {
  readonly error?: string | undefined;
  readonly description?: string | undefined;
  readonly status?: number | undefined;
  /** What it did, in our words. */
  readonly note?: string | undefined;
}

const OUTAGES: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error', 'slow_down']);
const OF_CLIENT: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client']);

/**
 * Runs one exchange with an authorization server and tells its failures in our words: `auth/unavailable` where it may be better
 * later, `auth/client-refused`, `auth/sign-in-refused`, or `auth/bad-answer`; those of our own fetch as they are. What the library
 * throws holds whole answers, so none of it is kept as a cause. `secrets` never appear in a message.
 */
export async function exchangeWith<T>(
  server: oauth.AuthorizationServer,
  secrets: readonly (string | undefined)[],
  exchange: () => Promise<T>,
): Promise<T> {
  try {
    return await exchange().catch((error: unknown) => {
      // It told the nonce that it wants, which the library has remembered (RFC 9449 §8).
      if (oauth.isDPoPNonceError(error)) return exchange();
      throw error;
    });
  } catch (error) {
    if (error instanceof SkepError) throw error;
    throw isOfLibrary(error) ? failure(server, await saidBy(error), secrets) : error;
  }
}

/** The failure for an error that came with the browser (RFC 6749 §4.1.2.1). */
export function failure(
  { issuer }: Pick<oauth.AuthorizationServer, 'issuer'>,
  said: Said,
  secrets: readonly (string | undefined)[] = [],
): SkepError {
  const { status } = said;
  const error = safe(said.error, secrets);
  const description = safe(said.description, secrets);
  const what = [error, description].filter((one) => one !== undefined).join(': ');
  const answered = what === '' ? `answered with status ${status ?? 'unknown'}` : `says "${what}"`;
  const message = `"${issuer}" ${said.note ?? answered}`;
  return new SkepError(codeOf(said), { message, detail: { error, status } });
}

function codeOf({ error, status = 400 }: Said): Code {
  if (error !== undefined && OF_CLIENT.has(error)) return 'auth/client-refused';
  if (status >= 500 || status === 429 || (error !== undefined && OUTAGES.has(error)))
    return 'auth/unavailable';
  return error === undefined ? 'auth/bad-answer' : 'auth/sign-in-refused';
}

function isOfLibrary(error: unknown): boolean {
  return (
    error instanceof oauth.ResponseBodyError ||
    error instanceof oauth.AuthorizationResponseError ||
    error instanceof oauth.WWWAuthenticateChallengeError ||
    error instanceof oauth.OperationProcessingError ||
    error instanceof oauth.UnsupportedOperationError
  );
}

async function saidBy(error: unknown): Promise<Said> {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
    const { error: code, error_description: description } = error;
    return {
      error: code,
      description,
      status: error instanceof oauth.ResponseBodyError ? error.status : 400,
    };
  }
  // It is thrown before the body is read, which says more.
  if (error instanceof oauth.WWWAuthenticateChallengeError) return bodyOf(error.response);
  const note = 'gave an answer that the standard does not allow';
  if (!(error instanceof oauth.OperationProcessingError)) return { status: 200, note };
  if (error.code === oauth.JWT_TIMESTAMP_CHECK)
    return { status: 200, note: 'gave a token of another time; compare its clock with that of this machine' };
  return error.cause instanceof Response && error.cause.status >= 300
    ? bodyOf(error.cause)
    : { status: 200, note };
}

async function bodyOf(response: Response): Promise<Said> {
  const { status } = response;
  const body = response.bodyUsed ? undefined : parsedJson(await response.text());
  if (!isRecord(body) || status < 400) return { status };
  const { error, error_description: description } = body;
  return { status, error: textOf(error), description: textOf(description) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * One printable line, unless it holds what nobody may read, in any spelling of a form (RFC 6749 appendix B). Long words are left out: no
 * reason is one, many secrets are.
 */
function safe(text: string | undefined, secrets: readonly (string | undefined)[]): string | undefined {
  if (text === undefined) return undefined;
  const spellings = [
    text,
    text.replace(/%([\dA-F]{2})/giu, (_, code: string) => String.fromCharCode(parseInt(code, 16))),
  ];
  const isTelling = secrets.some(
    (one) => one !== undefined && spellings.some((spelling) => spelling.includes(one)),
  );
  return isTelling ? undefined : printable(text.replace(/[\w.~+=%-]{24,}/gu, '…').slice(0, 200));
}
