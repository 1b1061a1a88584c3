import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { checkIssuerUrl, type IssuerFetch, type PlainHttp } from './issuer-fetch.ts';

const TYPE = 'urn:ietf:params:oauth:token-type:';

/** What a client's token may be (RFC 8693 §3), by its short name. */
type SubjectTokenType = 'access_token' | 'id_token' | 'jwt';

export interface ExchangeSettings {
  /** The token endpoint. */
  readonly url: string;
  readonly plainHttp: PlainHttp;
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly audience?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly resource?: string | undefined;
  readonly subjectTokenType: SubjectTokenType;
}

/** Exchanges tokens of clients for tokens of a server (RFC 8693). */
export interface Exchanger {
  /**
   * The token to call the server with. Fails with `auth/exchange-refused` where the endpoint gives none, and with
   * `auth/unavailable` where it does not answer.
   */
  readonly exchange: (token: string) => Promise<string>;
}

interface ExchangeServices {
  readonly fetch: IssuerFetch['fetch'];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

interface Answer {
  readonly token: string;
  readonly expiresInS: number;
}

/** A token is not handed out so shortly before its end. */
const LEEWAY_S = 30;
const MAX_TOKENS = 10_000;

/**
 * Fails with `auth/invalid-provider` for an address that is none. What the endpoint gave is cached, in memory, under a hash of
 * the client's token until shortly before it expires; the same token is exchanged once at a time.
 */
export function createExchanger(settings: ExchangeSettings, { fetch, now }: ExchangeServices): Exchanger {
  checkIssuerUrl(settings.url, settings.plainHttp);
  const cached = new LRUCache<string, { readonly token: string; readonly until: number }>({
    max: MAX_TOKENS,
  });
  const underWay = new Map<string, Promise<string>>();
  const ask = async (subject: string, key: string): Promise<string> => {
    const response = await fetch(settings.url, requestFor(subject, settings)).catch((cause: unknown) => {
      throw new SkepError('auth/unavailable', { cause });
    });
    const { token, expiresInS } = await readAnswer(response);
    const until = now() + (expiresInS - LEEWAY_S) * 1_000;
    if (until > now()) cached.set(key, { token, until });
    return token;
  };
  return {
    async exchange(subject) {
      const key = hash('sha256', subject, 'base64');
      const known = cached.get(key);
      if (known !== undefined && now() < known.until) return known.token;
      cached.delete(key);
      const asking = underWay.get(key) ?? ask(subject, key).finally(() => underWay.delete(key));
      underWay.set(key, asking);
      return asking;
    },
  };
}

/** RFC 8693 §2.1; a client with a secret shows both as RFC 6749 §2.3.1 says. */
function requestFor(subject: string, settings: ExchangeSettings): Parameters<IssuerFetch['fetch']>[1] {
  const { clientId, clientSecret, audience, scopes = [], resource } = settings;
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: subject,
    subject_token_type: TYPE + settings.subjectTokenType,
    requested_token_type: `${TYPE}access_token`,
    ...(audience === undefined ? {} : { audience }),
    ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
    ...(resource === undefined ? {} : { resource }),
  });
  const headers: Record<string, string> = {
    accept: 'application/json',
    'content-type': 'application/x-www-form-urlencoded',
  };
  if (clientId !== undefined && clientSecret !== undefined) {
    headers['authorization'] = basicLogin(clientId, clientSecret);
  } else if (clientId !== undefined) body.set('client_id', clientId);
  return { method: 'POST', headers, body };
}

/** The login of a client (RFC 6749 §2.3.1), with nothing encoded that a form does not: many servers never decode it. */
export function basicLogin(clientId: string, clientSecret: string): string {
  const login = [clientId, clientSecret].map(formEncoded).join(':');
  return `Basic ${Buffer.from(login).toString('base64')}`;
}

function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}

/** RFC 8693 §2.2; what the endpoint says of a refusal is for the log alone. */
async function readAnswer(response: Response): Promise<Answer> {
  const body = parsedJson(await response.text());
  const said = isRecord(body) ? body : {};
  if (response.status >= 500)
    throw new SkepError('auth/unavailable', { message: `the token endpoint answered ${response.status}` });
  if (response.status !== 200) throw refused(`status ${response.status}, ${textOf(said['error'])}`);
  const { access_token: token, token_type: type, issued_token_type: issued } = said;
  const isWhole = [token, type, issued].every((one) => typeof one === 'string' && one !== '');
  if (!isWhole || typeof token !== 'string') throw refused('the answer is not whole');
  if (!/^(?:bearer|n_a)$/iu.test(textOf(type))) throw refused('the token is no bearer token');
  // It becomes the value of a header (RFC 6750 §2.1).
  if (!/^[\w.~+/-]+=*$/u.test(token)) throw refused('the token is not one that a header can carry');
  const expires = Number(said['expires_in'] ?? 0);
  return { token, expiresInS: Number.isFinite(expires) ? expires : 0 };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 200) : '';
}

function refused(why: string): SkepError {
  return new SkepError('auth/exchange-refused', { message: `the token was not exchanged: ${why}` });
}
