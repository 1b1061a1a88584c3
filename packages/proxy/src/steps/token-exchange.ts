import { createExchanger, type ExchangeSettings } from '@skep/auth/token/exchange.ts';
import { createIssuerFetch, type IssuerFetch } from '@skep/auth/token/issuer-fetch.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import type { Call, Credentials } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { refuse } from '../call/refuse.ts';
import type { Part, PartServices } from './part.ts';
import { HOP_BY_HOP } from '../backend/http/hop-headers.ts';

/** How a client's token becomes one for the server (docs/behaviour/proxy.md#token-exchange). */
export interface TokenExchangeSettings extends ExchangeSettings {
  /** Carries the new token; `Authorization` by default. */
  readonly headerName?: string | undefined;
  /** False refuses a token endpoint at an address that is not public. */
  readonly allowPrivate: boolean;
  /** Absolute; PEM. */
  readonly caPath?: string | undefined;
}

interface Services extends Pick<PartServices, 'clock' | 'log' | 'transport'> {
  /** Replaces requests to the token endpoint; tests only. */
  readonly fetch?: IssuerFetch['fetch'];
}

const TIMEOUT_MS = 30_000;
const MAX_NAME_CHARACTERS = 256;

/** What the connection, the proxy or MCP itself says with them. */
const TAKEN = new Set([
  ...HOP_BY_HOP,
  'content-length',
  'content-type',
  'expect',
  'forwarded',
  'host',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-real-ip',
]);

/**
 * The row `outgoing-token`. Fails with `usage/invalid-value` for a header that cannot carry a token, with
 * `auth/invalid-provider`, `fetch/ca-bundle` or `file/*`; the endpoint is asked with the first call.
 */
export async function openTokenExchange(settings: TokenExchangeSettings, services: Services): Promise<Part> {
  const header = headerOf(settings.headerName);
  const { caPath, allowPrivate, plainHttp } = settings;
  const ca = caPath === undefined ? undefined : await readCaBundle(caPath);
  const connections = createIssuerFetch({ plainHttp, allowPrivate, ca, timeoutMs: TIMEOUT_MS });
  const { fetch = connections.fetch, clock, log, transport } = services;
  const { exchange } = createExchanger(settings, { fetch, now: clock.now });
  if (transport === 'stdio') log.warn({}, 'tokens are not exchanged: a server over stdio gets no headers');
  const credentialsFor = async ({ bearer }: Call): Promise<Credentials | undefined> => {
    // Whoever hosts the proxy has no token of the identity provider, and neither has anybody where nobody signs in.
    if (bearer === undefined || transport === 'stdio') return undefined;
    try {
      return { header, value: `Bearer ${await exchange(bearer)}` };
    } catch (error) {
      log.warn({ err: error }, 'a token could not be exchanged');
      throw error;
    }
  };
  const step: Step = async (call, next) => {
    const { res } = call;
    try {
      call.credentials = await credentialsFor(call);
    } catch (error) {
      const isRefused = hasCode(error, 'auth/exchange-refused');
      refuse(res, isRefused ? 'auth/exchange-refused' : 'auth/unavailable');
      return undefined;
    }
    return next();
  };
  return { steps: { 'outgoing-token': step }, credentialsFor, close: () => connections.close() };
}

function headerOf(name = 'Authorization'): string {
  const header = name.toLowerCase();
  const isName = /^[!#$%&'*+.^_`|~\w-]+$/u.test(name) && name.length <= MAX_NAME_CHARACTERS;
  if (isName && !TAKEN.has(header)) return header;
  throw new SkepError('usage/invalid-value', {
    message: `"${name.slice(0, MAX_NAME_CHARACTERS)}" is no header that can carry a token`,
    hint: 'give another name, such as X-Access-Token, or leave it out',
  });
}
